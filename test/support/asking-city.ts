/** A supervisor with a city whose agents speak ACP by script, and ask for permission when they are told to. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { type CliResult, cliHere } from './cli.ts'
import { type ConfigCity, createCity } from './config-city.ts'
import { at } from './document.ts'
import { eventually } from './http.ts'
import { type Running, run as runSupervisor } from './running.ts'
import { type TerminalOptions, TestTerminal } from './terminal.ts'

const ACP_AGENT = join(import.meta.dirname, 'acp-agent.ts')

export class AskingCity implements AsyncDisposable {
  readonly running: Running
  readonly city: ConfigCity

  private constructor(running: Running, city: ConfigCity) {
    this.running = running
    this.city = city
  }

  static async start(): Promise<AskingCity> {
    const running = await runSupervisor()
    const city = new AskingCity(running, await createCity(running.server, 'alpha'))
    const provider = {
      command: process.execPath,
      supports_acp: true,
      acp_command: process.execPath,
      acp_args: [ACP_AGENT],
      prompt_mode: 'omit',
    }
    await city.does('provider', 'create', 'scripted', '--data', JSON.stringify(provider))
    return city
  }

  get env(): Readonly<Record<string, string>> {
    return { SVC_HOME: this.running.server.home, SVC_CITY: 'alpha' }
  }

  run(...words: readonly string[]): Promise<CliResult> {
    return cliHere(words, { cwd: this.city.dir, env: this.env })
  }

  async does(...words: readonly string[]): Promise<string> {
    const { out, err, code } = await this.run(...words, '-q')
    assert.equal(code, 0, `${words.join(' ')}: ${err}`)
    return out
  }

  terminal(words: readonly string[], options: Omit<TerminalOptions, 'env'> = {}): TestTerminal {
    return new TestTerminal(words, { env: this.env, ...options })
  }

  /** A session of the scripted agent; its id. */
  async create(alias: string): Promise<string> {
    const words = ['session', 'create', 'scripted', '--provider', '--alias', alias, '--runtime', 'acp', '--wait']
    return String(at(JSON.parse(await this.does(...words, '-o', 'json')), 'session', 'id'))
  }

  /** A new session that waits for permission to use this tool; its id. */
  async asks(alias: string, tool: string): Promise<string> {
    const id = await this.create(alias)
    await this.does('session', 'message', id, 'ask', tool, '--no-wait')
    await eventually(`${alias} asks`, async () => (await this.does('needs')).includes(`\t${alias}\t`) || undefined)
    return id
  }

  /** Waits until its transcript has this. */
  async says(id: string, text: string): Promise<void> {
    await eventually(
      `${id} says ${text}`,
      async () => (await this.does('session', 'logs', id)).includes(text) || undefined,
    )
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.city.api.close()
    await this.running[Symbol.asyncDispose]()
  }
}
