// Packs over https with certificates of one's own, and over ssh: who is on the other side, who is let in, what leaks.
import assert from 'node:assert/strict'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { makeAuthority } from '../support/certificates.ts'
import { type ConfigCity, createCity } from '../support/config-city.ts'
import { type GitServer, makeRepository, startGitServer } from '../support/git-server.ts'
import { type Running, run } from '../support/running.ts'
import { type SshServer, startSshServer, withoutSshd } from '../support/ssh-server.ts'

const TOKEN = 't0ken-0f-mine'
const BASIC = Buffer.from(`x-access-token:${TOKEN}`).toString('base64')
const manifest = (name: string) => ({ 'pack.toml': `[pack]\nname = "${name}"\nschema = 2\n` })

const scratch = mkdtempSync(join(tmpdir(), 'svc-transports-'))
const stack = new AsyncDisposableStack()
stack.defer(() => rmSync(scratch, { recursive: true, force: true }))
after(() => stack.disposeAsync())

let running: Running
let city: ConfigCity
let git: GitServer
/** Its certificate is for another name. */
let misnamed: GitServer
/** Its certificate is of somebody else's. */
let stranger: GitServer
let ssh: SshServer | undefined
const authority = makeAuthority(scratch, 'ours')

before(async () => {
  git = stack.use(await startGitServer(join(scratch, 'https'), authority.issue('IP:127.0.0.1')))
  misnamed = stack.use(await startGitServer(join(scratch, 'misnamed'), authority.issue('DNS:git.example.org')))
  stranger = stack.use(
    await startGitServer(join(scratch, 'stranger'), makeAuthority(scratch, 'theirs').issue('IP:127.0.0.1')),
  )
  if (withoutSshd === false) ssh = stack.use(await startSshServer(join(scratch, 'ssh')))
  const hosts = [git, misnamed, stranger, ...(ssh === undefined ? [] : [ssh])].map(({ host }) => `"${host}"`)
  running = stack.use(
    await run({
      toml: `[supervisor]\nallowed_pack_hosts = [${hosts.join(', ')}]\n`,
      env: { SVC_PACKS_TOKEN: TOKEN, SVC_WRONG_TOKEN: 'wrong' },
    }),
  )
  city = await createCity(running.server, 'alpha')
})

/** What `credentials.toml` of the supervisor says. */
function credentials(...entries: readonly Readonly<Record<string, string>>[]): void {
  const lines = entries.map((entry) =>
    ['[[credential]]', ...Object.entries(entry).map(([key, value]) => `${key} = ${JSON.stringify(value)}`)].join('\n'),
  )
  writeFileSync(join(running.server.home, 'credentials.toml'), `${lines.join('\n')}\n`, { mode: 0o600 })
}

const attempt = async (source: string, name: string) =>
  city.outcome(await city.post('/packs', { source, name, trust: true }))

async function added(source: string, name: string): Promise<void> {
  const { type, payload } = await attempt(source, name)
  assert.equal(type, 'request.result.pack.add', JSON.stringify(payload))
}

async function fails(source: string, code: string, message: RegExp): Promise<void> {
  const { type, payload } = await attempt(source, 'failing')
  assert.equal(type, 'request.failed', JSON.stringify(payload))
  assert.equal(payload.error_code, code, JSON.stringify(payload))
  assert.match(String(payload.error_message), message)
}

const oneFile = (path: string, text: string): string => {
  writeFileSync(join(scratch, path), text, { mode: 0o600 })
  return join(scratch, path)
}

describe('over https', () => {
  test('a private issuer is refused until it is named, and the refusal says where', async () => {
    const { source } = git.repository('own-ca', manifest('own-ca'))
    credentials()
    await fails(source, 'untrusted_host', /certificate of 127\.0\.0\.1 is not accepted: .*`ca_file`.*credentials\.toml/)
    credentials({ match: git.host, ca_file: authority.file })
    await added(source, 'own-ca')
  })

  test('a certificate for another name, and one of another issuer, are refused with what is wrong', async () => {
    credentials({ match: misnamed.host, ca_file: authority.file }, { match: stranger.host, ca_file: authority.file })
    await fails(misnamed.repository('one', manifest('one')).source, 'untrusted_host', /is for another name/)
    await fails(
      stranger.repository('two', manifest('two')).source,
      'untrusted_host',
      /not of those who `ca_file` names/,
    )
  })

  test('an issuer that others can change is refused', async () => {
    const open = oneFile('open.pem', readFileSync(authority.file, 'utf8'))
    chmodSync(open, 0o666)
    credentials({ match: git.host, ca_file: open })
    await fails(git.repository('open', manifest('open')).source, 'pack_credential_required', /can be changed by others/)
  })

  const ways: readonly (readonly [string, () => Readonly<Record<string, string>>])[] = [
    ['token_env', () => ({ token_env: 'SVC_PACKS_TOKEN' })],
    ['token_file', () => ({ token_file: oneFile('token', `${TOKEN}\n`) })],
    ['helper', () => ({ helper: `printf 'username=x-access-token\\npassword=${TOKEN}\\n'; :` })],
  ]
  for (const [way, say] of ways) {
    test(`a repository that asks for a login is read with ${way}; without one the refusal says what to write`, async () => {
      const { source } = git.repository(`private-${way}`, manifest('private'))
      git.demand(`Basic ${BASIC}`)
      try {
        credentials({ match: git.host, ca_file: authority.file })
        await fails(
          source,
          'pack_credential_required',
          /asks for credentials: put a \[\[credential\]\] with `match = "127\.0\.0\.1"`/,
        )
        credentials(
          { match: git.host, ca_file: authority.file },
          { match: `${git.host}/private-${way}.git`, token_env: 'SVC_WRONG_TOKEN' },
        )
        await fails(source, 'pack_credential_required', /refuses the credentials/)
        credentials({ match: git.host, ca_file: authority.file, ...say() })
        await added(source, `private-${way.replace('_', '-')}`)
      } finally {
        git.demand(undefined)
      }
    })
  }

  test('a helper is asked as git asks it, and one that is endless or says too much ends the try', async () => {
    const asked = join(scratch, 'asked')
    const { source } = git.repository('helped', manifest('helped'))
    credentials({ match: git.host, helper: `cat > ${asked}; echo password=x; false` })
    await fails(source, 'pack_credential_required', /the credential helper failed/)
    assert.equal(readFileSync(asked, 'utf8'), `protocol=https\nhost=${git.host}\npath=helped.git\n\n`)
    credentials({ match: git.host, helper: 'yes password=x; :' })
    await fails(source, 'pack_credential_required', /said more than 64 KiB/)
  })

  test('a file of a city names no program and no login: it may have come with the city', async () => {
    const ran = join(scratch, 'ran')
    mkdirSync(join(city.dir, '.svc'), { recursive: true })
    const text = `[[credential]]\nmatch = "127.0.0.1"\nhelper = "touch ${ran}"\n`
    writeFileSync(join(city.dir, '.svc', 'credentials.toml'), text, { mode: 0o600 })
    credentials({ match: git.host, ca_file: authority.file })
    await added(git.repository('plain', manifest('plain')).source, 'plain')
    assert.equal(existsSync(ran), false)
  })

  const withoutProc = existsSync('/proc/self') ? false : 'there is no /proc here'
  test('a token stands in no argument, environment, file, log, event or answer while git uses it', {
    skip: withoutProc,
  }, async () => {
    const { source } = git.repository('secret', manifest('secret'))
    credentials({ match: git.host, ca_file: authority.file, token_file: oneFile('token', TOKEN) })
    git.demand(`Basic ${BASIC}`)
    const gate = git.hold('/secret.git/')
    const accepted = await city.post('/packs', { source })
    await gate.held
    const processes = new Map(processTexts())
    assert.ok(
      [...processes.values()].some((text) => text.includes('git-remote-https')),
      'git is at work',
    )
    const own = String(running.server.pid)
    for (const [pid, text] of processes) {
      if (pid === own || pid === String(process.pid)) continue
      assert.ok(!text.includes(TOKEN) && !text.includes(BASIC), `${pid}: ${text.slice(0, 200)}`)
    }
    const during = filesBelow(running.server.home)
    gate.release()
    assert.equal((await city.outcome(accepted)).type, 'request.result.pack.add')
    git.demand(undefined)
    const places = [
      during,
      filesBelow(running.server.home),
      filesBelow(city.dir),
      (await city.get('/events')).text,
      (await city.get('/packs')).text,
      (await city.post('/packs/check', { remote: true })).text,
    ].join('\n')
    assert.ok(!places.includes(TOKEN) && !places.includes(BASIC))
  })

  test('a rig is cloned with the same issuer and login as a pack', async () => {
    const { source } = git.repository('project', { 'README.md': '# Project\n' })
    git.demand(`Basic ${BASIC}`)
    try {
      credentials({ match: git.host, ca_file: authority.file })
      const refused = await city.outcome(await city.post('/rigs', { name: 'project', git_url: source }))
      assert.match(JSON.stringify(refused.payload), /clone_failed.*asks for credentials/)
      credentials({ match: git.host, ca_file: authority.file, token_env: 'SVC_PACKS_TOKEN' })
      const made = await city.outcome(await city.post('/rigs', { name: 'project', git_url: source }))
      assert.equal(made.type, 'request.result.rig.create', JSON.stringify(made.payload))
      const config = readFileSync(join(city.dir, 'rigs/project/.git/config'), 'utf8')
      assert.ok(!config.includes(TOKEN) && !config.includes('credential'), config)
    } finally {
      git.demand(undefined)
    }
  })

  test('what is too much for a pack is refused before it is written', async () => {
    const { source } = git.repository('heavy', { ...manifest('heavy'), 'zeros.bin': '\0'.repeat(17 * 1024 * 1024) })
    credentials({ match: git.host, ca_file: authority.file })
    await fails(source, 'clone_failed', /larger than 16 MiB/)
  })
})

describe('over ssh', { skip: withoutSshd }, () => {
  const server = (): SshServer => {
    assert.ok(ssh)
    return ssh
  }
  const repository = (name: string, files: Readonly<Record<string, string>> = manifest(name)) =>
    makeRepository(
      join(scratch, 'repositories'),
      name,
      `ssh://git@${server().host}${join(scratch, 'repositories')}`,
      files,
    )
  const entry = (more: Readonly<Record<string, string>> = {}) => ({
    match: server().host,
    ssh_key_file: server().keyFile,
    username: server().user,
    ...more,
  })

  test('an unknown host is not connected to, and the refusal says how to get to know it', async () => {
    const { source } = repository('unknown')
    credentials(entry())
    await fails(
      source,
      'untrusted_host',
      /ssh key of 127\.0\.0\.1 is not known: compare what `ssh-keyscan -p \d+ 127\.0\.0\.1`.*`known_hosts_file`/,
    )
    credentials(entry({ known_hosts_file: oneFile('known one', server().knownHosts) }))
    await added(source, 'unknown')
  })

  test('a key that is not let in is refused with what to write', async () => {
    const { source } = repository('keyless')
    const known_hosts_file = oneFile('known', server().knownHosts)
    credentials({ match: server().host, known_hosts_file })
    await fails(source, 'pack_credential_required', /asks for credentials: .*`ssh_key_file`/)
    credentials(entry({ known_hosts_file, ssh_key_file: join(scratch, 'ssh', 'host') }))
    await fails(source, 'pack_credential_required', /refuses the credentials/)
  })

  test('what is too much for a pack is refused before it is written', async () => {
    const { source } = repository('deep', { ...manifest('deep'), [`${'d/'.repeat(70)}file`]: '' })
    credentials(entry({ known_hosts_file: oneFile('known', server().knownHosts) }))
    await fails(source, 'clone_failed', /nested more than 64 levels/)
  })

  test('a host that has another key than it had is not connected to, and the refusal says so', async () => {
    const { source } = repository('changed')
    credentials(entry({ known_hosts_file: oneFile('known', server().knownHosts) }))
    await added(source, 'changed')
    await server().changeKey()
    await fails(
      repository('after').source,
      'untrusted_host',
      /is another than the known one: somebody may be in between/,
    )
  })
})

/** Arguments and environment of every process that may be looked at. */
function processTexts(): [string, string][] {
  return readdirSync('/proc').flatMap((pid): [string, string][] => {
    if (!/^\d+$/.test(pid)) return []
    try {
      const texts = ['cmdline', 'environ'].map((file) => readFileSync(join('/proc', pid, file), 'latin1'))
      return [[pid, texts.join('\n')]]
    } catch {
      return []
    }
  })
}

function filesBelow(dir: string): string {
  return readdirSync(dir, { recursive: true, withFileTypes: true })
    .filter((file) => file.isFile())
    .map((file) => {
      try {
        return readFileSync(join(file.parentPath, file.name), 'latin1')
      } catch {
        return ''
      }
    })
    .join('\n')
}
