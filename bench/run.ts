/**
 * `npm run bench`: every budget that can be measured, each with its floor in the same run. A table for people goes to
 * stderr, JSON to stdout.
 *
 *   --quick        the short form, at most three minutes
 *   --only NAME    one group, or several joined with commas
 *   --write        puts the table into bench/README.md
 *   --help         these, and the names of the groups
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { cpus, loadavg, tmpdir, totalmem, type } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import type { Bench, Group } from './bench.ts'
import { append } from './groups/append.ts'
import { chat } from './groups/chat.ts'
import { cli } from './groups/cli.ts'
import { config } from './groups/config.ts'
import { deliveries } from './groups/deliveries.ts'
import { digests } from './groups/digests.ts'
import { fanout } from './groups/fanout.ts'
import { get } from './groups/get.ts'
import { herd } from './groups/herd.ts'
import { imports } from './groups/imports.ts'
import { inbound } from './groups/inbound.ts'
import { lists, replay } from './groups/logs.ts'
import { mail } from './groups/mail.ts'
import { molecules } from './groups/molecules.ts'
import { orders } from './groups/orders.ts'
import { post } from './groups/post.ts'
import { proxy } from './groups/proxy.ts'
import { sessions } from './groups/sessions.ts'
import { crash, start } from './groups/start.ts'
import { terminal } from './groups/terminal.ts'
import { transcript } from './groups/transcript.ts'
import { usage } from './groups/usage.ts'
import { work } from './groups/work.ts'
import { type Machine, notesOf, type Report, type Row, toMarkdown, toText } from './rows.ts'

const GROUPS: Readonly<Record<string, Group>> = {
  append,
  post,
  get,
  fanout,
  replay,
  herd,
  lists,
  start,
  crash,
  imports,
  cli,
  config,
  sessions,
  digests,
  inbound,
  mail,
  chat,
  deliveries,
  terminal,
  transcript,
  usage,
  proxy,
  work,
  molecules,
  orders,
}
const README = join(import.meta.dirname, 'README.md')
const BEGIN = '<!-- table: written by `npm run bench -- --write` -->'
const END = '<!-- end of table -->'

const { values } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    only: { type: 'string' },
    write: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})
if (values.help) {
  process.stdout.write(
    `npm run bench -- [--quick] [--only NAME,…] [--write]\ngroups: ${Object.keys(GROUPS).join(' ')}\n`,
  )
  process.exit(0)
}

const report = await runGroups(chosen(values.only))
process.stderr.write(`\n${toText(report.rows)}\n`)
process.stdout.write(`${JSON.stringify(report, null, 2)}\n`)
if (values.write) writeTable(report)
process.exitCode = report.rows.some(({ pass }) => pass === false) ? 1 : 0

function chosen(only: string | undefined): readonly (readonly [string, Group])[] {
  const names = only?.split(',') ?? Object.keys(GROUPS)
  return names.map((name) => {
    const group = GROUPS[name]
    if (group === undefined) throw new Error(`no such group: ${name}; there are ${Object.keys(GROUPS).join(', ')}`)
    return [name, group]
  })
}

async function runGroups(groups: readonly (readonly [string, Group])[]): Promise<Report> {
  const machine = describeMachine()
  const dir = mkdtempSync(join(tmpdir(), 'svc-bench-'))
  const began = performance.now()
  const rows: Row[] = []
  const leave = () => rmSync(dir, { recursive: true, force: true })
  process.once('exit', leave)
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))
  for (const [name, group] of groups) {
    const say = (text: string) =>
      process.stderr.write(`${((performance.now() - began) / 1000).toFixed(0).padStart(4)} s  ${name}: ${text}\n`)
    say('begins')
    const bench: Bench = { quick: values.quick, dir, say }
    const found = await group(bench)
    process.stderr.write(`${toText(found)}\n`)
    rows.push(...found)
    for (const entry of readdirSync(dir)) rmSync(join(dir, entry), { recursive: true, force: true })
  }
  return { machine, quick: values.quick, seconds: Math.round((performance.now() - began) / 1000), rows }
}

function describeMachine(): Machine {
  const [first] = cpus()
  return {
    cpu: first?.model.trim() ?? 'unknown',
    cores: cpus().length,
    memoryGiB: Math.round(totalmem() / 1024 ** 3),
    system: type(),
    node: process.version,
    date: new Date().toISOString().slice(0, 10),
    loadAverage: Math.round((loadavg()[0] ?? 0) * 10) / 10,
  }
}

function writeTable({ machine, quick, seconds, rows }: Report): void {
  const { cpu, cores, memoryGiB, system, node, date, loadAverage } = machine
  const about = [
    `${date}, Node ${node}, ${system}, ${cores} × ${cpu}, ${memoryGiB} GiB; ${quick ? 'short form' : 'full form'}, ${seconds} s.`,
    `Load of the machine when it began: ${loadAverage}. Server and load generators are separate processes that share the ${cores} cores.`,
  ].join('\n')
  const text = readFileSync(README, 'utf8')
  const before = text.slice(0, text.indexOf(BEGIN) + BEGIN.length)
  const after = text.slice(text.indexOf(END))
  writeFileSync(README, `${before}\n\n${about}\n\n${toMarkdown(rows)}\n\n${notesOf(rows)}\n\n${after}`)
}
