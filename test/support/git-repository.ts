/** Working copies on disk, as people have them. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Runs git in a directory with an identity and without anybody's settings. */
export function git(cwd: string, ...args: readonly string[]): string {
  const who = {
    GIT_AUTHOR_NAME: 'T',
    GIT_AUTHOR_EMAIL: 't@example.org',
    GIT_COMMITTER_NAME: 'T',
    GIT_COMMITTER_EMAIL: 't@example.org',
  }
  return execFileSync('git', args, {
    cwd,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH: process.env['PATH'], HOME: cwd, GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_NOSYSTEM: '1', ...who },
  })
}

/** A repository with one commit on `branch`. */
export function makeRepository(directory: string, branch = 'main'): void {
  mkdirSync(directory, { recursive: true })
  git(directory, 'init', '--quiet', `--initial-branch=${branch}`)
  writeFileSync(join(directory, 'README.md'), '# Hello\n')
  git(directory, 'add', '.')
  git(directory, 'commit', '--quiet', '-m', 'first')
}
