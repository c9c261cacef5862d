/** The little of the package that is used; it comes without types of its own. */
declare module 'irc-framework' {
  export interface IrcMessage {
    readonly tags: Readonly<Record<string, string>>
    readonly prefix: string
    readonly nick: string
    readonly ident: string
    readonly hostname: string
    readonly command: string
    readonly params: readonly string[]
  }

  type RawHandler = (command: string, message: IrcMessage, line: string, client: Client, next: () => void) => void

  export class Client {
    readonly user: { readonly nick: string }
    readonly network: {
      readonly cap: { readonly enabled: readonly string[] }
      readonly options: Readonly<Record<string, unknown>>
    }
    requestCap(names: readonly string[]): void
    connect(options: Readonly<Record<string, unknown>>): void
    raw(line: string): void
    use(middleware: (client: Client, raw: { use(handler: RawHandler): void }) => void): void
    on(event: 'registered' | 'close', listener: () => void): void
    on(event: 'sasl failed', listener: (event: { readonly reason: string }) => void): void
  }
}
