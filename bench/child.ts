/**
 * Measuring programs run as processes of their own, so that a load generator never shares a thread with what it loads.
 * They are asked by messages: a command with options, answered with numbers.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { join } from 'node:path'

export type Options = Readonly<Record<string, string | number>>
export type Numbers = Readonly<Record<string, number>>
type Command = (options: Options) => Numbers | Promise<Numbers>

interface Waiting {
  readonly resolve: (numbers: Numbers) => void
  readonly reject: (error: Error) => void
}

export class Child implements AsyncDisposable {
  readonly #process: ChildProcess
  readonly #ended: Promise<void>
  readonly #waiting = new Map<number, Waiting>()
  #count = 0

  /** `program` is a file of bench/programs, without its extension. */
  constructor(program: string) {
    this.#process = fork(join(import.meta.dirname, 'programs', `${program}.ts`), { execArgv: [] })
    this.#process.on('message', (message) => this.#answer(message))
    this.#ended = new Promise((resolve) => {
      this.#process.once('exit', (code, signal) => {
        const error = new Error(`${program} ended with ${code ?? signal}`)
        for (const { reject } of this.#waiting.values()) reject(error)
        resolve()
      })
    })
  }

  get pid(): number {
    return this.#process.pid ?? 0
  }

  ask(command: string, options: Options = {}): Promise<Numbers> {
    const id = ++this.#count
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject })
      this.#process.send({ id, command, options })
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#process.kill('SIGKILL')
    await this.#ended
  }

  #answer(message: unknown): void {
    if (!isRecord(message)) return
    const id = Number(message['id'])
    const waiting = this.#waiting.get(id)
    this.#waiting.delete(id)
    if (message['error'] !== undefined) waiting?.reject(new Error(String(message['error'])))
    else waiting?.resolve(numbersOf(message['numbers']))
  }
}

/** The other end: answers commands until the parent goes. */
export function serveCommands(commands: Readonly<Record<string, Command>>): void {
  process.on('message', (message) => {
    if (!isRecord(message)) return
    const { id } = message
    const command = commands[String(message['command'])]
    const reply = async () =>
      command === undefined ? Promise.reject(new Error('no such command')) : command(optionsOf(message['options']))
    reply().then(
      (numbers) => process.send?.({ id, numbers }),
      (error: unknown) =>
        process.send?.({ id, error: error instanceof Error ? (error.stack ?? error.message) : String(error) }),
    )
  })
  process.on('disconnect', () => process.exit(0))
}

export const text = (options: Options, name: string): string => String(options[name] ?? '')
export const number = (options: Options, name: string): number => Number(options[name] ?? 0)

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null

function numbersOf(value: unknown): Numbers {
  return isRecord(value)
    ? Object.fromEntries(Object.entries(value).map(([name, one]) => [name, Number(one ?? Number.NaN)]))
    : {}
}

function optionsOf(value: unknown): Options {
  if (!isRecord(value)) return {}
  return Object.fromEntries(
    Object.entries(value).map(([name, one]) => [name, typeof one === 'number' ? one : String(one)]),
  )
}
