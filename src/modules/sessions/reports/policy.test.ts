import assert from 'node:assert/strict'
import { test } from 'node:test'
import { askedByProtocol, askedTool } from '../../../runtimes/process/asked-tool.ts'
import { type Place, type Rule, verdictOf } from './policy.ts'

const HERE: Place = { workDir: '/work/app', real: (path) => path }
const bash = (command: string) => askedTool('Bash', { command })
const decide = (rules: readonly Rule[], tool: ReturnType<typeof askedTool>, place = HERE) =>
  verdictOf([{ of: 'worker', rules }], tool, place)
const actionOf = (rules: readonly Rule[], tool: ReturnType<typeof askedTool>, place = HERE) =>
  decide(rules, tool, place)?.action ?? 'nobody'

const STATUS: Rule = { tool: 'Bash', match: 'git status*', action: 'allow' }

test('an allowed command does not let another one slip through behind it', () => {
  for (const plain of [
    'git status',
    'git status --short',
    "git status 'a b'",
    'git status -- src/*.ts',
    ' git status ',
  ])
    assert.equal(actionOf([STATUS], bash(plain)), 'allow', plain)
  const tricks = [
    'git status; rm -rf .',
    'git status && rm x',
    'git status & rm x',
    'git status | sh',
    'git status || rm x',
    'git status $(rm x)',
    'git status `rm x`',
    'git status "$(rm x)"',
    'git status\nrm x',
    'git status\r\nrm x',
    'git status > /etc/passwd',
    'git status < x',
    'git status <(rm x)',
    `git status ${'$'}{IFS}`,
    "git status $'\\n'",
    'git status \\\nrm x',
    'git status {a,b}',
    'git status (rm)',
    'git status !!',
    'git status # \nrm',
    'git status\u0000rm',
    'git status\u2028'.concat('\u0085rm'),
    'FOO=1 git status',
    'sudo git status',
  ]
  for (const trick of tricks) assert.equal(actionOf([STATUS], bash(trick)), 'nobody', JSON.stringify(trick))
})

test('a command of more than 64 KiB is allowed by no pattern, and refused by one all the same', () => {
  const long = (bytes: number) => bash(`git status ${'x'.repeat(bytes - 'git status '.length)}`)
  assert.equal(actionOf([STATUS], long(65_536)), 'allow')
  assert.equal(actionOf([STATUS], long(65_537)), 'nobody')
  assert.equal(actionOf([{ ...STATUS, action: 'deny' }], long(65_537)), 'deny')
})

test('a refused command is refused wherever it stands in a line', () => {
  const rules: Rule[] = [
    { tool: 'shell', match: 'rm *', action: 'deny' },
    { tool: 'shell', action: 'allow' },
  ]
  for (const command of [
    'rm -rf x',
    'ls; rm x',
    'ls && rm x',
    'echo $(rm x)',
    'X=1 rm x',
    'ls\nrm x',
    '(rm x)',
    '`rm x`',
  ])
    assert.equal(actionOf(rules, bash(command)), 'deny', command)
  assert.equal(actionOf(rules, bash('ls -l')), 'allow')
})

test('the first rule that holds decides, and is named; without one somebody is asked', () => {
  const rules: Rule[] = [STATUS, { tool: 'Bash', match: 'git *', action: 'ask' }, { tool: '*', action: 'deny' }]
  assert.deepEqual(decide(rules, bash('git status')), { action: 'allow', by: 'permissions[0] of worker' })
  assert.deepEqual(decide(rules, bash('git push')), { action: 'ask', by: 'permissions[1] of worker' })
  assert.deepEqual(decide(rules, askedTool('mcp__x__y', {})), { action: 'deny', by: 'permissions[2] of worker' })
  assert.equal(decide([], bash('ls')), undefined)
  const city = { of: 'the city', rules: [{ tool: '*', action: 'deny' } as const] }
  assert.equal(verdictOf([{ of: 'worker', rules: [STATUS] }, city], bash('ls'), HERE)?.by, 'permissions[0] of the city')
})

test('a tool is meant by its name, in any case, or by its kind, whatever its harness calls it', () => {
  for (const name of ['Bash', 'run_shell_command', 'exec_command'])
    assert.equal(
      actionOf([{ tool: 'shell', match: 'ls', action: 'allow' }], askedTool(name, { command: 'ls' })),
      'allow',
    )
  assert.equal(actionOf([{ tool: 'mcp__github__*', action: 'allow' }], askedTool('mcp__github__list', {})), 'allow')
  assert.equal(actionOf([{ tool: 'bash', action: 'allow' }], askedTool('Write', {})), 'nobody')
  assert.equal(
    actionOf(
      [{ tool: 'shell', match: 'ls -l', action: 'allow' }],
      askedTool('x', { command: ['ls', '-l'] }, 'execute'),
    ),
    'allow',
  )
  assert.equal(
    actionOf([STATUS], askedTool('bash', { command: ['bash', '-lc', 'git status; rm x'] })),
    'nobody',
    'what a shell is handed is looked at',
  )
})

test('a path is judged as it is, not as it is written', () => {
  const rules: Rule[] = [{ tool: 'edit', match: 'src/**', action: 'allow' }]
  const write = (file_path: string) => askedTool('Write', { file_path })
  assert.equal(actionOf(rules, write('/work/app/src/a/b.ts')), 'allow')
  assert.equal(actionOf(rules, write('src/b.ts')), 'allow')
  assert.equal(actionOf(rules, write('src/../../../etc/passwd')), 'nobody')
  assert.equal(actionOf(rules, write('/etc/passwd')), 'nobody')
  const linked: Place = { workDir: '/work/app', real: (path) => path.replace('/work/app/src/link', '/etc') }
  assert.equal(actionOf(rules, write('src/link/passwd'), linked), 'nobody')
  const elsewhere: Place = { workDir: '/work/app', real: (path) => path.replace('/work', '/mnt/disk') }
  assert.equal(actionOf(rules, write('src/b.ts'), elsewhere), 'allow', 'the work directory is itself a link')
  const patch = (...files: string[]) =>
    askedTool('apply_patch', { command: files.map((file) => `*** Update File: ${file}`).join('\n') })
  assert.equal(actionOf(rules, patch('src/a.ts', 'src/b.ts')), 'allow')
  assert.equal(actionOf(rules, patch('src/a.ts', '.env')), 'nobody', 'every file of a patch')
  assert.equal(actionOf([{ tool: 'edit', match: '**/.env', action: 'deny' }], patch('src/a.ts', '.env')), 'deny')
})

test('in a path an asterisk stays in its directory, and signs of regular expressions mean themselves', () => {
  const edit = (match: string, path: string) =>
    actionOf([{ tool: 'edit', match, action: 'allow' }], askedTool('Edit', { path }))
  assert.equal(edit('src/*.ts', 'src/a.ts'), 'allow')
  assert.equal(edit('src/*.ts', 'src/a/b.ts'), 'nobody')
  assert.equal(edit('**/*.md', 'a.md'), 'allow')
  assert.equal(edit('**/*.md', 'a/b/c.md'), 'allow')
  assert.equal(edit('src/a.ts', 'src/axts'), 'nobody')
  assert.equal(edit('/work/app/**', 'x'), 'allow')
  assert.equal(edit('a(b)[c]{d}+', 'a(b)[c]{d}+'), 'allow')
})

test('a command that nobody knows is let through by no pattern, and one that might refuse it asks', () => {
  const unknown = askedTool('Bash', {})
  const rules: Rule[] = [
    { tool: 'shell', match: '*', action: 'allow' },
    { tool: 'shell', match: 'rm *', action: 'deny' },
    { tool: 'shell', action: 'allow' },
  ]
  assert.deepEqual(decide(rules, unknown), { action: 'ask', by: 'permissions[1] of worker' })
  assert.equal(actionOf(rules.slice(2), unknown), 'allow')
})

test('what the agent protocol says of a tool is judged like what a hook says', () => {
  const run = (command: string) =>
    askedByProtocol({ kind: 'execute', command, paths: [], input: JSON.stringify({ command }) })
  assert.equal(actionOf([{ tool: 'shell', match: 'git status*', action: 'allow' }], run('git status')), 'allow')
  assert.equal(actionOf([{ tool: 'shell', match: 'git status*', action: 'allow' }], run('git status; rm x')), 'nobody')
  const edit = askedByProtocol({ kind: 'edit', paths: ['/work/app/src/a.ts', '/etc/passwd'] })
  assert.equal(actionOf([{ tool: 'edit', match: 'src/**', action: 'allow' }], edit), 'nobody')
})
