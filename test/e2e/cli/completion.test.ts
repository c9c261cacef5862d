// Completion at a Tab in real shells on a terminal. A shell that is not installed is skipped: apt-get install zsh fish.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { spawn } from '@lydell/node-pty'
import xterm from '@xterm/headless'
import { cliHere } from '../../support/cli.ts'
import { eventually } from '../../support/http.ts'
import { newCity, type Running, run } from '../../support/running.ts'

const ENTRY = resolve(import.meta.dirname, '../../../tools/svcctl.mjs')
const PROMPT = 'svc>'

interface ShellProgram {
  readonly args: readonly string[]
  readonly setUp: readonly string[]
  /** Shows what a candidate is. */
  readonly describes: boolean
}

const SHELLS: Readonly<Record<string, ShellProgram>> = {
  bash: {
    args: ['--norc', '--noprofile', '-i'],
    setUp: [`PS1='${PROMPT} '`, 'source <(svcctl completion bash)'],
    describes: false,
  },
  zsh: {
    args: ['-f', '-i'],
    setUp: [`PROMPT='${PROMPT} '`, 'autoload -U compinit && compinit -u -D', 'source <(svcctl completion zsh)'],
    describes: true,
  },
  fish: {
    args: ['--no-config', '-i'],
    setUp: [`function fish_prompt; printf '${PROMPT} '; end`, 'svcctl completion fish | source'],
    describes: true,
  },
}

let running: Running
let folder: string
let request: string
before(async () => {
  running = await run()
  await newCity(running.api, running.work, 'demo')
  const env = { SVC_API: running.server.url, SVC_CITY: 'demo' }
  request = (await cliHere(['request', 'list', '-o', 'name'], { env })).out.trim()
  assert.match(request, /^req-\w+$/)
  folder = join(running.work, 'folder')
  mkdirSync(join(folder, 'bin'), { recursive: true })
  writeFileSync(join(folder, 'lines.jsonl'), '')
  writeFileSync(join(folder, 'demofile'), '')
  const program = join(folder, 'bin', 'svcctl')
  writeFileSync(program, `#!/bin/sh\nexec "${process.execPath}" "${ENTRY}" "$@"\n`)
  chmodSync(program, 0o755)
})
after(() => running[Symbol.asyncDispose]())

/** A shell on a terminal; what is typed at its prompt, and what its screen shows. */
class ShellScreen implements Disposable {
  readonly #screen = new xterm.Terminal({ cols: 120, rows: 50, allowProposedApi: true })
  readonly #shell

  constructor(name: string, { args }: ShellProgram) {
    const env = {
      ...process.env,
      PATH: `${join(folder, 'bin')}:${process.env['PATH']}`,
      HOME: folder,
      XDG_CACHE_HOME: join(running.work, 'cache'),
      XDG_CONFIG_HOME: join(folder, '.config'),
      SVC_HOME: running.server.home,
      SVC_API: '',
      SVC_CITY: 'demo',
      TERM: 'xterm',
      LC_ALL: 'C.UTF-8',
    }
    this.#shell = spawn(name, [...args], { cols: 120, rows: 50, cwd: folder, env })
    this.#shell.onData((data) => this.#screen.write(data))
    this.#screen.onData((answer) => this.#shell.write(answer))
  }

  text(): string {
    const { active } = this.#screen.buffer
    const lines = Array.from({ length: active.length }, (_, y) => active.getLine(y)?.translateToString(true) ?? '')
    return lines.join('\n').trimEnd()
  }

  /** The last prompt, with what stands behind it. */
  line(): string {
    return this.text().split(PROMPT).at(-1) ?? ''
  }

  type(keys: string): void {
    this.#shell.write(keys)
  }

  async shows(said: (screen: ShellScreen) => boolean, what: string): Promise<void> {
    await eventually('', () => said(this) || undefined, 30_000).catch(() =>
      assert.fail(`${what}; the screen:\n${this.text()}`),
    )
  }

  /** A new, empty prompt. */
  async clear(): Promise<void> {
    this.type('\u0015')
    await this.shows((screen) => screen.line().trim() === '', 'an empty prompt')
  }

  [Symbol.dispose](): void {
    this.#shell.kill('SIGKILL')
  }
}

for (const [name, program] of Object.entries(SHELLS)) {
  const isThere = spawnSync(name, ['--version']).error === undefined
  suite(name, { skip: isThere ? false : `${name} is not installed`, timeout: 180_000 }, () => {
    let shell: ShellScreen
    before(async () => {
      shell = new ShellScreen(name, program)
      for (const line of program.setUp) shell.type(`${line}\r`)
      shell.type('echo re""ady\r')
      await shell.shows((screen) => /^ready\n(.*\n)*svc>\s*$/m.test(screen.text()), 'the shell is ready')
    })
    after(() => shell[Symbol.dispose]())

    for (const [typed, expected] of [
      ['svcctl city get de', () => 'svcctl city get demo'],
      ['svcctl bead list --city=d', () => 'svcctl bead list --city=demo'],
      ['svcctl provider create x --base builtin:cod', () => 'svcctl provider create x --base builtin:codex'],
      ['svcctl provider get cod', () => 'svcctl provider get codex'],
      ['svcctl request get req', () => `svcctl request get ${request}`],
      ['svcctl config explain workspace.pro', () => 'svcctl config explain workspace.provider'],
      ['svcctl config get city.t', () => 'svcctl config get city.toml'],
      ['svcctl serve --log-l', () => 'svcctl serve --log-level'],
      ['svcctl serve --log-level=err', () => 'svcctl serve --log-level=error'],
      ['svcctl bead list -o jsonp', () => 'svcctl bead list -o jsonpath='],
      ['svcctl bead list --sort=-created_a', () => 'svcctl bead list --sort=-created_at'],
      ['svcctl bead import lin', () => 'svcctl bead import lines.jsonl'],
      ['svcctl help exi', () => 'svcctl help exit-codes'],
    ] as const)
      test(`${typed}<Tab>`, async () => {
        await shell.clear()
        shell.type(`${typed}\t`)
        await shell.shows((screen) => screen.line().trim().startsWith(expected()), `expected ${expected()}`)
      })

    test('values of the server are not mixed with files, and have a word about them where the shell shows it', async () => {
      await shell.clear()
      shell.type('svcctl city stop de\t')
      await shell.shows((screen) => screen.line().trim() === 'svcctl city stop demo', 'the city and no file')
      await shell.clear()
      shell.type('svcctl session p\t\t')
      await shell.shows((screen) => /permission/.test(screen.text()) && /prompt/.test(screen.text()), 'the verbs')
      if (program.describes) await shell.shows((screen) => /Ask whether a session/i.test(screen.text()), 'what they do')
      assert.doesNotMatch(shell.line(), /demofile/)
    })
  })
}

test('an answer is there within 300 ms of the program, and the second time without the server', async () => {
  const env = { SVC_API: running.server.url, SVC_CITY: 'demo', XDG_CACHE_HOME: join(running.work, 'cache-of-its-own') }
  const ask = (api: string) => cliHere(['__complete', 'provider', 'get', 'cod'], { env: { ...env, SVC_API: api } })
  const first = await ask(running.server.url)
  assert.match(first.out, /^codex/)
  const { port } = new URL(running.server.url)
  running.server.child.kill('SIGSTOP')
  try {
    assert.equal((await ask(running.server.url)).out, first.out)
    // Another spelling of the same server is another question, and nobody answers it.
    const started = performance.now()
    assert.equal((await ask(`http://localhost:${port}`)).out, '')
    assert.ok(performance.now() - started < 2_000)
  } finally {
    running.server.child.kill('SIGCONT')
  }
})
