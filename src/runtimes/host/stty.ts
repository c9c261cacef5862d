/** The mode of a terminal, by its master. Node cannot ask for that of one that is not its own. */

const STTY_MS = 2_000

export function stty(fd: number, ...words: readonly string[]): string | undefined {
  const { spawnSync } = process.getBuiltinModule('node:child_process')
  const done = spawnSync('stty', words, { stdio: [fd, 'pipe', 'ignore'], encoding: 'utf8', timeout: STTY_MS })
  return done.status === 0 ? done.stdout : undefined
}

/** Whether its program reads key by key, not line by line; undefined where nobody can tell. */
export function isRaw(fd: number): boolean | undefined {
  const mode = stty(fd, '-a')
  return mode === undefined ? undefined : /(?:^|\s)-icanon\b/.test(mode)
}
