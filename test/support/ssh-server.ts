/** OpenSSH's own server on a loopback port, with throw-away keys, for whoever runs the tests. */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createConnection, createServer } from 'node:net'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { eventually } from './http.ts'

const SSHD = ['/usr/sbin/sshd', '/usr/local/sbin/sshd', '/usr/bin/sshd'].find((path) => existsSync(path))

/** Why tests with an ssh server are skipped; false where they are not. */
export const withoutSshd: string | false =
  SSHD === undefined ? 'there is no sshd here: install openssh-server (apt-get install openssh-server)' : false

export interface SshServer extends AsyncDisposable {
  readonly host: string
  readonly port: number
  /** Login of whoever runs the tests. */
  readonly user: string
  /** A private key that it lets in. */
  readonly keyFile: string
  /** What `known_hosts` says of it. */
  readonly knownHosts: string
  /** Gives it another host key, as a machine that was made anew has. */
  changeKey(): Promise<void>
}

/** Runs until it is disposed. */
export async function startSshServer(dir: string): Promise<SshServer> {
  mkdirSync(dir, { recursive: true, mode: 0o700 })
  // What it wants where it is started by root.
  if (process.getuid?.() === 0) mkdirSync('/run/sshd', { recursive: true, mode: 0o755 })
  const at = (name: string): string => join(dir, name)
  const makeKey = (name: string): void => {
    for (const path of [at(name), at(`${name}.pub`)]) rmSync(path, { force: true })
    execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', at(name)])
  }
  makeKey('host')
  makeKey('user')
  writeFileSync(at('authorized'), readFileSync(at('user.pub')))
  chmodSync(at('authorized'), 0o600)
  const port = await freePort()
  writeFileSync(
    at('config'),
    [
      `Port ${port}`,
      'ListenAddress 127.0.0.1',
      `HostKey ${at('host')}`,
      `AuthorizedKeysFile ${at('authorized')}`,
      'PidFile none',
      'UsePAM no',
      'StrictModes no',
      'PasswordAuthentication no',
      'KbdInteractiveAuthentication no',
      'PermitRootLogin prohibit-password',
      'MaxStartups 100',
    ].join('\n'),
  )
  let child = await start(at('config'), port)
  return {
    host: `127.0.0.1:${port}`,
    port,
    user: userInfo().username,
    keyFile: at('user'),
    get knownHosts() {
      return `[127.0.0.1]:${port} ${readFileSync(at('host.pub'), 'utf8')}`
    },
    async changeKey() {
      await stop(child)
      makeKey('host')
      child = await start(at('config'), port)
    },
    [Symbol.asyncDispose]: () => stop(child),
  }
}

type Child = ReturnType<typeof spawn>

async function start(config: string, port: number): Promise<Child> {
  const child = spawn(SSHD ?? 'sshd', ['-D', '-e', '-f', config], { stdio: ['ignore', 'ignore', 'pipe'] })
  let said = ''
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    said += text
  })
  await eventually('sshd listens', async () => {
    if (child.exitCode !== null) throw new Error(`sshd ended: ${said}`)
    return (await listens(port)) ? true : undefined
  })
  return child
}

async function stop(child: Child): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const gone = once(child, 'exit')
  child.kill('SIGKILL')
  await gone
}

const listens = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = createConnection(port, '127.0.0.1', () => resolve(true))
    socket.on('error', () => resolve(false)).on('connect', () => socket.destroy())
  })

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  if (address === null || typeof address === 'string') throw new Error('no port')
  return address.port
}
