/**
 * What hooks of a run told while nobody listened, or nobody in time: they leave it beside the run (`cli/hooks/run.ts`),
 * and it is heard when the run is taken over, and with every tick.
 */
import { rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { SessionReportRequest } from '../../../contract/sessions/reports.ts'
import { readRegularLater } from '../../../files/read.ts'
import { parseTime } from '../../../kernel/clock.ts'

const FILE = 'missed-reports'
const KEY = /^[A-Za-z0-9][A-Za-z0-9._:/-]{0,255}$/
const MAX_TEXT = 4_096

export interface Missed {
  /** In the order in which they were told; whatever else stands in the file is left out. */
  readonly reports: readonly SessionReportRequest[]
  /** Removes the file: what it tells is on disk elsewhere. Until then it is heard again. */
  forget(): Promise<void>
}

/** Call it once at a time for each directory. Undefined: nothing was left there. */
export async function takeMissed(directory: string): Promise<Missed | undefined> {
  const path = join(directory, FILE)
  const taken = `${path}.taken`
  const read = () => readRegularLater(taken).catch(() => undefined)
  // What was taken before and never forgotten comes first. A new one goes out of the way of the hook that comes next.
  const bytes = (await read()) ?? (await rename(path, taken).then(read, () => undefined))
  if (bytes === undefined) return undefined
  const reports = bytes
    .toString('utf8')
    .split('\n')
    .flatMap((line) => reportIn(line) ?? [])
  return { reports, forget: () => rm(taken, { force: true }) }
}

/** Whoever writes there is the session itself, and may be anything. */
function reportIn(line: string): SessionReportRequest | undefined {
  const {
    generation,
    instance_token: token,
    at,
    activity,
    resume_key: key,
    model,
    transcript_path: path,
  } = fieldsIn(line)
  const time = textOf(at)
  if (time === undefined || parseTime(time) === undefined) return undefined
  return {
    at: time,
    ...(typeof generation === 'number' ? { generation } : {}),
    ...(textOf(token) === undefined ? {} : { instance_token: String(token) }),
    ...(activity === 'idle' || activity === 'in-turn' ? { activity } : {}),
    ...(KEY.test(textOf(key) ?? '') ? { resume_key: String(key) } : {}),
    ...(textOf(model) === undefined ? {} : { model: String(model) }),
    ...(textOf(path)?.startsWith('/') === true ? { transcript_path: String(path) } : {}),
  }
}

function fieldsIn(line: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(line)
    return typeof value === 'object' && value !== null ? { ...value } : {}
  } catch {
    return {}
  }
}

const textOf = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' && value.length <= MAX_TEXT ? value : undefined
