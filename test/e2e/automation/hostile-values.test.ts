// Whatever stands in names, values, reports and files of formulas and orders: it is data, and it hurts nobody else.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { at } from '../../support/document.ts'
import { putFormula, putOrder, simpleFormula, simpleOrder } from '../../support/document-city.ts'
import { HealthWatch } from '../../support/health.ts'
import { eventually } from '../../support/http.ts'
import { MoleculeCity } from '../../support/molecule-city.ts'
import { type RunningSupervisor, startSupervisor } from '../../support/supervisor.ts'

let supervisor: RunningSupervisor
before(async () => {
  supervisor = await startSupervisor()
})
after(() => supervisor[Symbol.asyncDispose]())

const SAYS = `title = "Say {{ said }}"
[vars]
said = "it"
[[steps]]
id = "do"
title = "Do {{ said }}"
description = "Begin<{{ said }}>end"
metadata = { said = "{{ said }}" }
output = ["heard"]
check = { exec = 'printf "%s" "$SVC_VAR_SAID"' }
[[steps]]
id = "inner"
needs = ["do"]
expand = "part"
with = { what = "{{ steps.do.output.heard }}" }
`
const PART = '[vars]\nwhat = "it"\n[[steps]]\nid = "do"\ntitle = "In"\ndescription = "Begin<{{ what }}>end"\n'
const TEXTS = [
  '{{ molecule.id }}',
  '{% raw %}{{ said }}',
  "{% render 'nobody' %}",
  '{{ "x" | append: ',
  '$(touch PWNED)',
  '`touch PWNED`',
  '"; touch PWNED; "',
  "'; touch PWNED; '",
  '--help',
  '*',
  'one\r\ntwo\n',
  '\u001b[31mred\u0007',
  '\u202etxt.exe',
  '\ufeff\u2028',
  '__proto__',
  '💥'.repeat(50),
]

test('values are data: no template, no shell, no terminal reads them again', { timeout: 120_000 }, async () => {
  const city = await MoleculeCity.start(supervisor, 'texts', { part: PART, says: SAYS })
  const started = await Promise.all(
    TEXTS.map(async (said) => ({ said, ...(await city.launch('says', { vars: { said } })) })),
  )
  for (const { said, id, title, vars } of started) {
    assert.deepEqual(vars, { said })
    assert.ok(title.startsWith('Say'), title)
    const bead = await city.readBead(await city.beadOf(id, 'do'))
    assert.ok(bead.description?.includes(`Begin<${said}>end`), `${JSON.stringify(said)}: ${bead.description}`)
    assert.equal(at(bead.metadata, 'said'), said)
    await city.finish(id, 'do', { output: { heard: said } })
    const inner = await city.readBead(await city.beadOf(id, 'inner.do'))
    assert.ok(inner.description?.includes(`Begin<${said}>end`), `${JSON.stringify(said)}: ${inner.description}`)
    await city.finish(id, 'inner.do')
    await city.is(id, 'completed')
  }
  const checks = await city.city.events('execution.check_completed')
  assert.equal(checks.length, TEXTS.length)
  assert.ok(checks.every(({ payload }) => payload['exit_code'] === 0))
  assert.ok(!existsSync(join(city.city.dir, 'PWNED')))
})

test('what is too long, too deep or no text is refused where it stands, or fails its step alone', {
  timeout: 120_000,
}, async () => {
  const city = await MoleculeCity.start(supervisor, 'sizes', {
    part: PART,
    says: SAYS,
    one: '[[steps]]\nid = "work"\ntitle = "A"\n',
    runs: '[vars]\nsaid = "it"\n[[steps]]\nid = "do"\ntitle = "Do {{ said }}"\ncheck = { exec = "true" }\n',
  })
  await using health = new HealthWatch(supervisor.url)
  const post = async (path: string, json: string) => {
    const answer = await city.city.api.call('POST', `${city.city.base}${path}`, {
      bytes: json,
      headers: { 'content-type': 'application/json' },
    })
    return answer.status
  }
  const refused = async (path: string, json: string) => {
    const status = await post(path, json)
    assert.ok(status >= 400 && status < 500, `${path} ${json.slice(0, 60)}: ${status}`)
  }
  const deep = (levels: number) => `${'['.repeat(levels)}1${']'.repeat(levels)}`
  for (const value of ['"\\ud800"', deep(100_000), '{"__proto__":1}', '1e999'])
    await refused('/molecules', `{"formula":"says","vars":{"said":${value}}}`)
  const many = Object.fromEntries(Array.from({ length: 5_000 }, (_, n) => [`v${n}`, n]))
  await refused('/molecules', JSON.stringify({ formula: 'says', vars: many }))
  await refused('/molecules', JSON.stringify({ formula: 'says', vars: { said: 'x'.repeat(1_100_000) } }))
  await refused('/sling', JSON.stringify({ target: 'a\u0000', text: 'x' }))
  for (const path of ['/formulas/validate', '/orders/validate'])
    await refused(path, JSON.stringify({ source: 'x'.repeat(1_100_000) }))

  // Longer than metadata: its step, and it alone, says so. Longer than a variable of a command: it is left out of those.
  const large = { vars: { said: 'y'.repeat(200_000) } }
  const { failure } = await city.stepIs((await city.launch('says', large)).id, 'do', 'failed')
  assert.match(failure?.message ?? '', /^it comes to 200000 characters: a value of metadata has at most 65536$/)
  const long = await city.launch('runs', large)
  await city.finish(long.id, 'do')
  await city.is(long.id, 'completed')
  const id = (await city.launch('says')).id
  const bead = await city.beadOf(id, 'do')
  const close = (output: string) => post(`/beads/${bead}/close`, `{"outcome":"pass","output":{"heard":${output}}}`)
  for (const output of [deep(100_000), JSON.stringify('z'.repeat(257 * 1024)), '"\\udfff"']) {
    const status = await close(output)
    assert.ok(status >= 400 && status < 500, `${output.slice(0, 20)}: ${status}`)
  }
  assert.equal((await city.readBead(bead)).status, 'open')
  assert.equal(await close(JSON.stringify('z'.repeat(255 * 1024))), 200)
  await eventually('what is too long to be described fails, or stands there', async () => {
    const { status } = await city.step(id, 'inner.do')
    return status === 'ready' || status === 'failed' ? true : undefined
  })
  const other = (await city.launch('one')).id
  await city.finish(other, 'work')
  await city.is(other, 'completed')
  await health.answers()
})

test('files that are none, and bytes that are no text, stand in nobody’s way', { timeout: 60_000 }, async () => {
  const { city } = await MoleculeCity.start(supervisor, 'files', { fine: '[[steps]]\nid = "work"\ntitle = "A"\n' })
  await using health = new HealthWatch(supervisor.url)
  const secret = join(supervisor.work, 'secret.toml')
  writeFileSync(secret, `${simpleFormula('linked')}# hunter2\n`)
  mkdirSync(join(city.dir, 'orders'), { recursive: true })
  const strange: Readonly<Record<string, (path: string) => void>> = {
    pipe: (path) => void execFileSync('mkfifo', [path]),
    device: (path) => symlinkSync('/dev/zero', path),
    linked: (path) => symlinkSync(secret, path),
    circle: (path) => symlinkSync('circle.toml', path),
    folder: (path) => mkdirSync(path),
    big: (path) => {
      writeFileSync(path, '# big\n')
      truncateSync(path, 5_000_000)
    },
  }
  const put = { formulas: putFormula, orders: putOrder }
  const texts = { formulas: simpleFormula, orders: () => simpleOrder() }
  for (const kind of ['formulas', 'orders'] as const) {
    for (const [name, place] of Object.entries(strange)) place(join(city.dir, kind, `${name}.toml`))
    await city.post('/config/reload')
    await eventually(`${kind} are looked at`, async () =>
      (await city.get(`/${kind}/pipe`)).text.includes('cannot be read') ? true : undefined,
    )
    for (const name of Object.keys(strange)) {
      for (const path of [`/${kind}/${name}`, `/${kind}/${name}/source`]) {
        const answer = await city.get(path)
        assert.ok(answer.status < 500, `${path}: ${answer.text}`)
        assert.doesNotMatch(answer.text, /hunter2/, path)
      }
      const written = await put[kind](city, name, texts[kind](name))
      assert.ok(written.status < 500, `${kind} ${name}: ${written.text}`)
    }
    for (const name of ['..%2fcity', '..%2F..%2Fx', '%2e%2e', '.', '%00', 'a%0ab', '%ff', '..%5cx', 'a'.repeat(300)])
      for (const [method, rest] of [
        ['PUT', ''],
        ['DELETE', ''],
        ['GET', '/source'],
      ] as const) {
        const options =
          method === 'PUT' ? { bytes: texts[kind]('x'), headers: { 'content-type': 'application/toml' } } : {}
        const answer = await city.api.call(method, `${city.base}/${kind}/${name}${rest}`, options)
        assert.ok(answer.status >= 400 && answer.status < 500, `${method} ${kind}/${name}: ${answer.status}`)
      }
    const text = texts[kind]('crlf').replaceAll('\n', '\r\n')
    const kept = await put[kind](city, 'crlf', text)
    assert.equal(kept.status, 201, kept.text)
    assert.equal(city.read(`${kind}/crlf.toml`), text)
    for (const bytes of [
      `${texts[kind]('nul')}# \0\n`,
      '\ufeff\ufeff',
      `# ${'x'.repeat(256 * 1024)}`,
      ' '.repeat(1024 * 1024 + 1),
    ]) {
      const answer = await put[kind](city, 'nul', bytes)
      assert.ok(answer.status >= 400 && answer.status < 500, `${JSON.stringify(bytes.slice(0, 20))}: ${answer.text}`)
    }
    const marked = await put[kind](city, 'marked', `\ufeff${texts[kind]('marked')}`)
    assert.ok(marked.status === 201 || marked.status === 422, marked.text)
    assert.equal((await city.get('/formulas/fine')).status, 200)
    for (const name of Object.keys(strange)) rmSync(join(city.dir, kind, `${name}.toml`), { recursive: true })
  }
  assert.ok(!existsSync(join(supervisor.work, 'x.toml')))
  assert.match(execFileSync('cat', [secret], { encoding: 'utf8' }), /hunter2/)
  await health.answers()
})
