/** The IRC servers that tests run on: ours in two kinds always, and those of others where they are installed. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import { eventually } from './http.ts'
import { IrcServer, type IrcServerOptions } from './irc-server.ts'

export interface IrcWorld extends AsyncDisposable {
  readonly name: string
  readonly port: number
  /** Lines are answered by their echo. */
  readonly exact: boolean
  /** What was said before is shown. */
  readonly history: boolean
  /** Ours: it tells of every line before anybody hears it. */
  readonly server?: IrcServer
  /** What whoever made the channel sends, so that its past is kept. */
  readonly keepsPast?: (channel: string) => string
}

export interface WorldKind {
  readonly name: string
  readonly start: (directory: string) => Promise<IrcWorld>
}

const own = (name: string, options: IrcServerOptions): WorldKind => ({
  name,
  async start() {
    const server = await IrcServer.start(options)
    return {
      name,
      port: server.port,
      server,
      exact: options.modern === true,
      history: options.history !== undefined,
      [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
    }
  },
})

const OWN: readonly WorldKind[] = [
  own('our server, which replays', { modern: true, history: 'join' }),
  own('our server, which is asked', { modern: true, history: 'command' }),
  own('our plain server', {}),
]

const NGIRCD = '/usr/sbin/ngircd'
const INSPIRCD = '/usr/sbin/inspircd'

/** With the names of those that are missing. */
export function ircWorlds(): { readonly kinds: readonly WorldKind[]; readonly missing: readonly string[] } {
  const others = [
    { path: NGIRCD, kind: { name: 'ngircd', start: startNgircd } },
    { path: INSPIRCD, kind: { name: 'InspIRCd', start: startInspircd } },
  ]
  return {
    kinds: [...OWN, ...others.filter(({ path }) => existsSync(path)).map(({ kind }) => kind)],
    missing: others.filter(({ path }) => !existsSync(path)).map(({ kind }) => kind.name),
  }
}

async function startNgircd(directory: string): Promise<IrcWorld> {
  const port = await freePort()
  const config = join(directory, 'ngircd.conf')
  writeFileSync(
    config,
    `[Global]
Name = irc.test.net
Info = test
Listen = 127.0.0.1
Ports = ${port}
[Limits]
MaxConnectionsIP = 0
MaxPenaltyTime = 0
[Options]
Ident = no
PAM = no
DNS = no
SyslogFacility = local0
`,
  )
  const server = spawn(NGIRCD, ['-n', '-f', config], { stdio: 'ignore' })
  return running('ngircd', port, server, { exact: false, history: false })
}

async function startInspircd(directory: string): Promise<IrcWorld> {
  const port = await freePort()
  const modules = ['cap', 'ircv3_ctctags', 'ircv3_batch', 'ircv3_servertime', 'ircv3_msgid', 'ircv3_echomessage']
  const more = ['ircv3_labeledresponse', 'ircv3_accounttag', 'ircv3', 'chanhistory']
  const config = join(directory, 'inspircd.conf')
  const run = join(directory, 'run')
  mkdirSync(run)
  writeFileSync(
    config,
    `<server name="irc.test.net" description="test" network="Test">
<admin name="test" nick="test" email="test@example.org">
<bind address="127.0.0.1" port="${port}" type="clients">
<path configdir="${directory}" datadir="${run}" logdir="${run}" runtimedir="${run}" moduledir="/usr/lib/inspircd/modules">
<connect allow="*" timeout="60" pingfreq="120" hardsendq="1M" softsendq="8192" recvq="32K" localmax="100" globalmax="100" threshold="1000" commandrate="100000" fakelag="no" resolvehostnames="no" useident="no">
<class name="none">
${[...modules, ...more].map((name) => `<module name="${name}">`).join('\n')}
<chanhistory maxlines="200" enableumode="no" prefixmsg="no">
<pid file="${join(run, 'pid')}">
`,
  )
  const root = process.getuid?.() === 0 ? ['--runasroot'] : []
  const server = spawn(INSPIRCD, ['--nofork', '--nolog', '--nopid', ...root, '--config', config], { stdio: 'ignore' })
  return running('InspIRCd', port, server, {
    exact: true,
    history: true,
    keepsPast: (channel) => `MODE ${channel} +H 100:1d`,
  })
}

async function running(
  name: string,
  port: number,
  server: ChildProcess,
  traits: Pick<IrcWorld, 'exact' | 'history' | 'keepsPast'>,
): Promise<IrcWorld> {
  const ended = new Promise<void>((resolve) => server.once('exit', () => resolve()))
  await eventually(`${name} listens`, async () => {
    if (server.exitCode !== null) throw new Error(`${name} ended with ${server.exitCode}`)
    return (await answers(port)) ? true : undefined
  })
  return {
    name,
    port,
    ...traits,
    async [Symbol.asyncDispose]() {
      server.kill('SIGKILL')
      await ended
    },
  }
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })
}

/** For servers that cannot take any that is free. */
function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const probe = createServer().listen(0, '127.0.0.1', () => {
      const address = probe.address()
      const port = typeof address === 'object' && address !== null ? address.port : 0
      probe.close(() => resolve(port))
    })
  })
}

export const versionOf = (kind: WorldKind): string =>
  kind.name === 'ngircd'
    ? (spawnSync(NGIRCD, ['-V'], { encoding: 'utf8' }).stdout.split('\n')[0] ?? '')
    : kind.name === 'InspIRCd'
      ? spawnSync(INSPIRCD, ['--version'], { encoding: 'utf8' }).stdout.trim()
      : 'ours'
