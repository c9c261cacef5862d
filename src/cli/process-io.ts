/** The command's world, made from the process. */
import { spawn, spawnSync } from 'node:child_process'
import { fstatSync } from 'node:fs'
import { homedir } from 'node:os'
import { isatty } from 'node:tty'
import { BrokenPipe, Interrupted, type Io, type Sink, type Source } from './base/io.ts'
import { forTerminal, paintedForTerminal } from './print/terminal-text.ts'
import { processTerminal } from './process-terminal.ts'

const DEFAULT_COLUMNS = 80
const STTY_MS = 2_000
/** Signals that end a command, and their numbers. */
const SIGNALS = { SIGINT: 2, SIGTERM: 15, SIGHUP: 1 } as const

export function createProcessIo(cwd: string): Io {
  const { env } = process
  const terminal = processTerminal(env)
  const signal = interruptions(() => terminal?.isLent === true)
  return {
    env,
    cwd,
    home: env['HOME'] ?? homedir(),
    stdin: createSource(signal),
    stdout: createSink(process.stdout),
    stderr: createSink(process.stderr),
    terminal,
    clock: {
      now: () => Date.now(),
      after(ms, work) {
        // Longer than a timer can count means: not in the life of this process.
        const timer = setTimeout(work, Math.min(ms, 2 ** 31 - 1))
        return () => clearTimeout(timer)
      },
    },
    random: () => Math.random(),
    newKey: () => crypto.randomUUID(),
    signal,
    reading: () => AbortSignal.any([signal, readerGone()]),
  }
}

/**
 * Aborted when nobody reads the pipe any more that stdout is. The kernel tells that only to those who write or poll, and
 * Node does not poll what it only writes to; `tail -f` of GNU does, and dies of it. Where there is none, or stdout is no
 * pipe, the next write finds out.
 */
function readerGone(): AbortSignal {
  const gone = new AbortController()
  if (!fstatSync(1).isFIFO()) return gone.signal
  const lookout = spawn('tail', ['-f', `--pid=${process.pid}`, '/dev/null'], { stdio: ['ignore', 'inherit', 'ignore'] })
  lookout.on('error', () => undefined)
  lookout.on('exit', (_code, signal) => {
    if (signal === 'SIGPIPE') gone.abort(new BrokenPipe())
  })
  lookout.unref()
  process.once('exit', () => lookout.kill())
  return gone.signal
}

/** Ctrl-C is meant for the program that has the terminal: where it is lent, that is not this one. */
function interruptions(isLent: () => boolean): AbortSignal {
  const controller = new AbortController()
  for (const [name, number] of Object.entries(SIGNALS)) {
    const interrupt = () => {
      if (name === 'SIGINT' && isLent()) return
      // A second one ends the process by force.
      process.removeListener(name, interrupt)
      controller.abort(new Interrupted(128 + number))
    }
    process.on(name, interrupt)
  }
  return controller.signal
}

function createSink(stream: NodeJS.WriteStream): Sink {
  let broken = false
  stream.on('error', () => {
    broken = true
  })
  const isTerminal = stream.isTTY === true
  // Bytes can end in the middle of a letter.
  const decoder = new TextDecoder()
  const shown = (text: string | Uint8Array, how: 'painted' | undefined) =>
    (how === 'painted' ? paintedForTerminal : forTerminal)(
      typeof text === 'string' ? text : decoder.decode(text, { stream: true }),
    )
  return {
    isTerminal,
    get columns() {
      if (!isTerminal) return DEFAULT_COLUMNS
      // One that reports none has no width: nothing is cut for it.
      return stream.columns > 0 ? stream.columns : Number.POSITIVE_INFINITY
    },
    write(text, how) {
      if (broken) return Promise.reject(new BrokenPipe())
      return new Promise((resolve, reject) => {
        stream.write(isTerminal ? shown(text, how) : text, (error) => {
          if (error) reject('code' in error && error.code === 'EPIPE' ? new BrokenPipe() : error)
          else resolve()
        })
      })
    },
  }
}

// Nothing touches stdin before somebody reads it: opening it alone can keep a process alive.
function createSource(signal: AbortSignal): Source {
  return {
    isTerminal: isatty(0),
    async readAll() {
      const stream = process.stdin
      const stop = () => stream.destroy(signal.reason)
      signal.addEventListener('abort', stop, { once: true })
      const chunks: Uint8Array[] = []
      for await (const chunk of stream) chunks.push(Buffer.from(chunk))
      signal.removeEventListener('abort', stop)
      return Buffer.concat(chunks).toString('utf8')
    },
    async *chunks(until) {
      until.throwIfAborted()
      const stream = process.stdin
      const stop = () => stream.destroy(until.aborted ? until.reason : signal.reason)
      for (const one of [until, signal]) one.addEventListener('abort', stop, { once: true })
      try {
        for await (const chunk of stream) yield Buffer.from(chunk)
      } finally {
        for (const one of [until, signal]) one.removeEventListener('abort', stop)
      }
    },
    endLinesAt(key) {
      // The terminal goes on editing lines by itself: reading key by key would take its editing away.
      const before = stty('-g')?.trim()
      if (before === undefined || stty('eol', key) === undefined) return () => undefined
      return () => void stty(before)
    },
    async readLine() {
      const { createInterface } = await import('node:readline/promises')
      const lines = createInterface({ input: process.stdin })
      // The end of the input is an answer too: none.
      const ended = new Promise<string>((resolve) => lines.once('close', () => resolve('')))
      try {
        return await Promise.race([lines.question('', { signal }), ended])
      } finally {
        lines.close()
        signal.throwIfAborted()
      }
    },
  }
}

/** Asks or changes the mode of the terminal that stdin is; undefined where that cannot be done. */
function stty(...words: readonly string[]): string | undefined {
  const done = spawnSync('stty', words, { stdio: ['inherit', 'pipe', 'ignore'], encoding: 'utf8', timeout: STTY_MS })
  return done.status === 0 ? done.stdout : undefined
}
