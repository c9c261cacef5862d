/** A city for tests of mail: the command line of a person, and of the sessions in it. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { type CliResult, cliHere, type WorldOptions } from './cli.ts'
import { asMap, at } from './document.ts'
import { newCity, type Running } from './running.ts'
import { type TerminalOptions, TestTerminal } from './terminal.ts'

export class MailCity {
  readonly running: Running
  readonly name: string
  readonly dir: string

  private constructor(running: Running, name: string) {
    this.running = running
    this.name = name
    this.dir = join(running.work, name)
  }

  static async create(running: Running, name: string): Promise<MailCity> {
    await newCity(running.api, running.work, name)
    return new MailCity(running, name)
  }

  /** Of whom the command line is: a person, or the session of this id. */
  env(session?: string): Readonly<Record<string, string>> {
    const own = session === undefined ? {} : { SVC_SESSION_ID: session }
    return { SVC_HOME: this.running.server.home, SVC_CITY: this.name, ...own }
  }

  run(words: readonly string[], { as, ...options }: WorldOptions & { readonly as?: string } = {}): Promise<CliResult> {
    return cliHere(words, { cwd: this.dir, env: this.env(as), ...options })
  }

  async does(words: readonly string[], options: WorldOptions & { readonly as?: string } = {}): Promise<string> {
    const { out, err, code } = await this.run([...words, '-q'], options)
    assert.equal(code, 0, `${words.join(' ')}: ${err}`)
    return out
  }

  async json(words: readonly string[], options: WorldOptions & { readonly as?: string } = {}) {
    return asMap(JSON.parse(await this.does([...words, '-o', 'json'], options)))
  }

  /** Sends a message; its id. */
  async sends(to: string, subject: string, body: string, as?: string): Promise<string> {
    const words = ['mail', 'send', to, '-s', subject, '-b', body]
    return String(at(await this.json(words, as === undefined ? {} : { as }), 'id'))
  }

  /** A shell with an alias; its id. */
  async session(alias: string): Promise<string> {
    const words = ['session', 'create', 'shell', '--provider', '--alias', alias, '--wait']
    return String(at(await this.json(words), 'session', 'id'))
  }

  terminal(words: readonly string[], options: Partial<TerminalOptions> = {}): TestTerminal {
    return new TestTerminal(words, { columns: 90, rows: 18, ...options, env: { ...this.env(), ...options.env } })
  }
}
