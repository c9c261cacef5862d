/** Git repositories made by a test on disk, served over loopback HTTP by git's own `http-backend`. */
import { execFileSync, spawn } from 'node:child_process'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { dirname, join } from 'node:path'

const http = process.getBuiltinModule('node:http')
const https = process.getBuiltinModule('node:https')

export interface GitServer extends AsyncDisposable {
  readonly url: string
  readonly host: string
  /** Paths and Authorization headers of the requests so far. */
  readonly seen: { readonly url: string; readonly authorization: string | undefined }[]
  /** A repository `<name>.git` with these files in its first commit. */
  repository(name: string, files: Readonly<Record<string, string>>): GitRepository
  /** Holds every request for objects below this path back until it is released. */
  hold(path?: string): { readonly held: Promise<void>; release(): void }
  /** Answers requests below this path with a redirect. */
  redirect(path: string, to: string): void
  /** Wants this Authorization header; undefined: none. */
  demand(authorization: string | undefined): void
}

export interface GitRepository {
  /** Changes files and commits; answers with the commit. */
  commit(files: Readonly<Record<string, string>>, tag?: string): string
  tag(name: string): void
  /** Runs git in it. */
  git(args: readonly string[], input?: string | Buffer): string
  readonly head: string
  /** What a city imports. */
  readonly source: string
}

/** Serves repositories of `dir` until disposed; with a certificate over https. */
export async function startGitServer(
  dir: string,
  tls?: { readonly key: string; readonly cert: string },
): Promise<GitServer> {
  mkdirSync(dir, { recursive: true })
  const seen: { url: string; authorization: string | undefined }[] = []
  const redirects = new Map<string, string>()
  let gate: Promise<void> | undefined
  let gated = '/'
  let onHeld = () => {}
  let demanded: string | undefined
  const answer = (request: IncomingMessage, response: ServerResponse) => {
    const url = request.url ?? ''
    const { authorization } = request.headers
    seen.push({ url, authorization })
    const redirect = [...redirects].find(([path]) => url.startsWith(path))
    if (redirect !== undefined) {
      response.writeHead(301, { location: redirect[1] + url.slice(redirect[0].length) }).end()
      return
    }
    if (demanded !== undefined && authorization !== demanded) {
      response.writeHead(401, { 'www-authenticate': 'Basic realm="packs"' }).end()
      return
    }
    const waits = request.method === 'POST' && url.startsWith(gated) ? gate : undefined
    if (waits !== undefined) onHeld()
    const wait = waits ?? Promise.resolve()
    wait.then(() => backend(dir, request, response)).catch(() => response.destroy())
  }
  const server = tls === undefined ? http.createServer(answer) : https.createServer(tls, answer)
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  const host = `127.0.0.1:${address.port}`
  const base = `${tls === undefined ? 'http' : 'https'}://${host}`
  return {
    url: base,
    host,
    seen,
    repository: (name, files) => makeRepository(dir, name, base, files),
    hold(path = '/') {
      gated = path
      const { promise, resolve } = Promise.withResolvers<void>()
      const held = Promise.withResolvers<void>()
      gate = promise
      onHeld = held.resolve
      return {
        held: held.promise,
        release() {
          gate = undefined
          resolve()
        },
      }
    },
    redirect: (path, to) => redirects.set(path, to),
    demand(authorization) {
      demanded = authorization
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((done) => server.close(done))
      rmSync(dir, { recursive: true, force: true })
    },
  }
}

function backend(root: string, request: IncomingMessage, response: ServerResponse): void {
  const url = new URL(request.url ?? '', 'http://localhost')
  const child = spawn('git', ['http-backend'], {
    env: {
      PATH: process.env['PATH'] ?? '',
      GIT_PROJECT_ROOT: root,
      GIT_HTTP_EXPORT_ALL: '1',
      PATH_INFO: url.pathname,
      QUERY_STRING: url.search.slice(1),
      REQUEST_METHOD: request.method ?? 'GET',
      CONTENT_TYPE: request.headers['content-type'] ?? '',
      HTTP_CONTENT_ENCODING: String(request.headers['content-encoding'] ?? ''),
      GIT_PROTOCOL: String(request.headers['git-protocol'] ?? ''),
      GIT_CONFIG_GLOBAL: '/dev/null',
      GIT_CONFIG_NOSYSTEM: '1',
    },
    stdio: ['pipe', 'pipe', 'ignore'],
  })
  // A caller that has gone away sends no end: without this, git would wait for it for ever, and the test process with it.
  response.once('close', () => child.kill())
  if (response.destroyed || request.destroyed) child.kill()
  request.pipe(child.stdin).on('error', () => {})
  const chunks: Buffer[] = []
  child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk))
  child.on('close', () => {
    if (response.destroyed) return
    const answer = Buffer.concat(chunks)
    const cut = answer.indexOf('\r\n\r\n')
    const headers = new Map(
      answer
        .subarray(0, cut)
        .toString()
        .split('\r\n')
        .map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]),
    )
    const status = Number((headers.get('status') ?? '200').split(' ')[0])
    headers.delete('status')
    response.writeHead(status, Object.fromEntries(headers)).end(answer.subarray(cut + 4))
  })
}

/** A repository below `root` that is reached below `url`. */
export function makeRepository(
  root: string,
  name: string,
  url: string,
  files: Readonly<Record<string, string>>,
): GitRepository {
  const work = join(root, `${name}.git`)
  mkdirSync(work, { recursive: true })
  const git = (...args: string[]): string => run(args)
  const run = (args: readonly string[], input: string | Buffer = ''): string =>
    execFileSync('git', args, {
      cwd: work,
      encoding: 'utf8',
      input,
      stdio: ['pipe', 'pipe', 'ignore'],
      env: {
        PATH: process.env['PATH'] ?? '',
        GIT_CONFIG_GLOBAL: '/dev/null',
        GIT_CONFIG_NOSYSTEM: '1',
        GIT_AUTHOR_NAME: 't',
        GIT_AUTHOR_EMAIL: 't@example.org',
        GIT_COMMITTER_NAME: 't',
        GIT_COMMITTER_EMAIL: 't@example.org',
      },
    }).trim()
  git('init', '--quiet', '--initial-branch=main')
  const commit = (changes: Readonly<Record<string, string>>, tag?: string): string => {
    for (const [path, text] of Object.entries(changes)) {
      mkdirSync(dirname(join(work, path)), { recursive: true })
      writeFileSync(join(work, path), text)
    }
    git('add', '--all')
    git('commit', '--quiet', '--allow-empty', '--message', 'change')
    if (tag !== undefined) git('tag', tag)
    return git('rev-parse', 'HEAD')
  }
  commit(files)
  return {
    commit,
    tag: (tag) => void git('tag', tag),
    git: run,
    get head() {
      return git('rev-parse', 'HEAD')
    },
    source: `${url}/${name}.git`,
  }
}
