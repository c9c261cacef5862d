/** The background work of packs: `pack.add`, `pack.install`, `pack.upgrade`. */
import type { Job } from '../../kernel/jobs.ts'
import type { AddInput } from './admission.ts'
import type { PackCity } from './city/city.ts'
import { scopeOf } from './city/imports.ts'
import type { Packs } from './service.ts'

const DEADLINE_MS = 900_000

/** Each can run again from its start after a crash (P3). */
export function packJobs(packs: Packs, city: () => PackCity): readonly Job[] {
  const add: Job<'pack.add'> = {
    operation: 'pack.add',
    deadlineMs: DEADLINE_MS,
    resumable: true,
    async run({ id, input }, signal) {
      const { name, scope, source, pinned, commit, revision } = await packs.add(city(), readInput(input), signal)
      const pin = commit === undefined || pinned === undefined ? {} : { version: pinned, commit }
      return () => ({
        type: 'request.result.pack.add',
        actor: 'api',
        subject: name,
        payload: { request_id: id, name, scope, source, ...pin, revision },
      })
    },
  }
  const install: Job<'pack.install'> = {
    operation: 'pack.install',
    deadlineMs: DEADLINE_MS,
    resumable: true,
    async run({ id }, signal) {
      const { installed, removed, total, revision } = await packs.install(city(), signal)
      const pins = installed.map(({ source, version, commit }) => ({ source, version, commit }))
      return () => ({
        type: 'request.result.pack.install',
        actor: 'api',
        subject: city().name,
        payload: { request_id: id, installed: pins, removed: [...removed], total, revision },
      })
    },
  }
  const upgrade: Job<'pack.upgrade'> = {
    operation: 'pack.upgrade',
    deadlineMs: DEADLINE_MS,
    resumable: true,
    async run({ id, input }, signal) {
      const names = Array.isArray(input['names']) ? input['names'].map(String) : undefined
      const { upgraded, revision } = await packs.upgrade(city(), names, signal)
      const changes = upgraded.map(({ pin, previous }) => ({
        source: pin.source,
        version: pin.version,
        commit: pin.commit,
        previous_version: previous.version,
        previous_commit: previous.commit,
      }))
      return () => ({
        type: 'request.result.pack.upgrade',
        actor: 'api',
        subject: city().name,
        payload: { request_id: id, upgraded: changes, revision },
      })
    },
  }
  return [add, install, upgrade]
}

/** What `prepareAdd` stored, out of the ledger. */
function readInput(input: Readonly<Record<string, unknown>>): AddInput {
  const text = (key: string): string => String(input[key] ?? '')
  const trust = input['trust'] === true
  return { name: text('name'), scope: scopeOf(text('scope')), source: text('source'), version: text('version'), trust }
}
