/** A real browser without a window, driven over its own protocol; tests skip where none is installed. */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { eventually } from './eventually.ts'
import { temporaryDirectory } from './temporary.ts'

const NAMES = ['chromium', 'chromium-browser', 'google-chrome']
const START_MS = 60_000

/** The first browser that is installed. */
const BROWSER = NAMES.find((name) => spawnSync('sh', ['-c', `command -v ${name}`]).status === 0)
export const missingBrowser = BROWSER === undefined ? `none of ${NAMES.join(', ')} is installed` : false

interface Target {
  readonly type: string
  readonly webSocketDebuggerUrl: string
}

interface Answered {
  readonly id?: number
  readonly result?: { readonly result?: { readonly value?: unknown }; readonly exceptionDetails?: unknown }
}

export class Browser implements AsyncDisposable {
  readonly #child: ChildProcess
  readonly #place: Disposable
  readonly #socket: WebSocket
  readonly #waiting = new Map<number, (answer: Answered) => void>()
  #count = 0

  private constructor(child: ChildProcess, place: Disposable, socket: WebSocket) {
    this.#child = child
    this.#place = place
    this.#socket = socket
    socket.onmessage = ({ data }) => {
      const answer: Answered = JSON.parse(String(data))
      this.#waiting.get(answer.id ?? 0)?.(answer)
    }
  }

  /** With one page, which is empty. */
  static async start(): Promise<Browser> {
    const place = temporaryDirectory()
    const child = spawn(
      BROWSER ?? '',
      [
        '--headless=new',
        '--no-sandbox',
        '--disable-gpu',
        '--disable-dev-shm-usage',
        '--remote-debugging-port=0',
        `--user-data-dir=${place.path}`,
        'about:blank',
      ],
      { stdio: 'ignore', env: { ...process.env, HOME: place.path } },
    )
    const file = join(place.path, 'DevToolsActivePort')
    const port = await eventually(
      'the browser is there',
      () => (existsSync(file) ? readFileSync(file, 'utf8').split('\n')[0] || undefined : undefined),
      START_MS,
    )
    const url = await eventually('its page is there', async () => {
      const pages: readonly Target[] = JSON.parse(await (await fetch(`http://127.0.0.1:${port}/json`)).text())
      return pages.find(({ type }) => type === 'page')?.webSocketDebuggerUrl
    })
    const socket = new WebSocket(url)
    await new Promise((resolve, reject) => {
      socket.onopen = resolve
      socket.onerror = () => reject(new Error('the browser does not answer'))
    })
    return new Browser(child, place, socket)
  }

  async open(url: string): Promise<void> {
    await this.#send('Page.navigate', { url })
  }

  /** What an expression is in the page, as JSON. */
  async evaluate(expression: string): Promise<unknown> {
    const { result } = await this.#send('Runtime.evaluate', { expression, awaitPromise: true, returnByValue: true })
    assert.equal(result?.exceptionDetails, undefined, JSON.stringify(result?.exceptionDetails))
    return result?.result?.value
  }

  /** Waits until the page is called that. */
  async titled(title: string): Promise<void> {
    await eventually(
      `the page is called ${title}`,
      async () => ((await this.evaluate('document.title').catch(() => '')) === title ? true : undefined),
      START_MS,
    )
  }

  #send(method: string, params: object): Promise<Answered> {
    const id = ++this.#count
    return new Promise((resolve) => {
      this.#waiting.set(id, resolve)
      this.#socket.send(JSON.stringify({ id, method, params }))
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const gone = new Promise((resolve) => this.#child.once('exit', resolve))
    this.#socket.close()
    this.#child.kill('SIGKILL')
    await gone
    this.#place[Symbol.dispose]()
  }
}
