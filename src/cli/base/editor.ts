/** The user's own editor, on a copy of a text. */
import { spawn } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { EXIT, Failure } from './failure.ts'
import type { Io } from './io.ts'

/** A file that is being edited; it stays until it is discarded, so that no text is lost to a refusal. */
export interface Draft {
  readonly path: string
  /** Opens the editor; resolves with the text when it has ended. */
  edit(): Promise<string>
  discard(): Promise<void>
}

/** `name` only tells the editor what kind of text it is. */
export async function createDraft({ env }: Io, name: string, text: string): Promise<Draft> {
  const command = env['VISUAL'] || env['EDITOR'] || 'vi'
  const path = join(await mkdtemp(join(tmpdir(), 'svcctl-edit-')), basename(name))
  await writeFile(path, text, { mode: 0o600 })
  return {
    path,
    async edit() {
      await run(command, path, env)
      return readFile(path, 'utf8')
    },
    discard: () => rm(dirname(path), { recursive: true, force: true }),
  }
}

/** By the shell, because such variables hold whole command lines (`code --wait`); the path is an argument of its own. */
function run(command: string, path: string, env: Io['env']): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn('/bin/sh', ['-c', `${command} "$1"`, 'sh', path], { stdio: 'inherit', env: { ...env } })
    child.once('error', (error) =>
      reject(new Failure(EXIT.failure, `the editor "${command}" cannot be run`, { cause: error })),
    )
    child.once('exit', (code) => {
      if (code === 0) resolve()
      else
        reject(
          new Failure(EXIT.failure, `the editor "${command}" ended with ${code ?? 'a signal'}; nothing is changed`),
        )
    })
  })
}
