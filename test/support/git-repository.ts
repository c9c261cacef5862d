/** Real git repositories, and a host that serves them over HTTP as plain files; it can be told to keep its callers waiting. */
import { execFileSync } from 'node:child_process'
import { createReadStream, existsSync, mkdirSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join, normalize } from 'node:path'

/** Runs git in a directory with an identity and without anybody's settings. */
export function git(cwd: string, ...args: readonly string[]): string {
  const who = { GIT_AUTHOR_NAME: 'T', GIT_AUTHOR_EMAIL: 't@example.org', GIT_COMMITTER_NAME: 'T', GIT_COMMITTER_EMAIL: 't@example.org' }
  return execFileSync('git', args, {
    cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'],
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

export interface GitHost extends AsyncDisposable {
  /** `127.0.0.1:<port>`. */
  readonly address: string
  /** Makes the repository `name` fetchable; answers with its URL. */
  publish(name: string, branch?: string): string
  url(name: string): string
  /** From now on nobody gets an answer, until the returned function is called. */
  hold(): () => void
  /** Paths that were asked for. */
  readonly asked: readonly string[]
}

export async function gitHost(root: string): Promise<GitHost> {
  const asked: string[] = []
  let gate = Promise.resolve()
  const server = createServer(async (request, response) => {
    const path = normalize(decodeURIComponent((request.url ?? '/').split('?')[0] ?? '/'))
    asked.push(path)
    await gate
    const file = join(root, path)
    if (!existsSync(file) || !statSync(file).isFile()) {
      response.writeHead(404).end()
      return
    }
    createReadStream(file).pipe(response)
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const bound = server.address()
  const address = `127.0.0.1:${typeof bound === 'object' && bound !== null ? bound.port : 0}`
  const url = (name: string) => `http://${address}/${name}.git`
  return {
    address,
    asked,
    url,
    publish(name, branch = 'main') {
      makeRepository(join(root, 'work', name), branch)
      git(root, 'clone', '--quiet', '--bare', join(root, 'work', name), join(root, `${name}.git`))
      git(join(root, `${name}.git`), 'update-server-info')
      return url(name)
    },
    hold() {
      const held = Promise.withResolvers<void>()
      gate = held.promise
      return () => held.resolve()
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((done) => server.close(done))
    },
  }
}
