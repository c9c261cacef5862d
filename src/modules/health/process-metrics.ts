/** What the process itself costs, under the names that dashboards for Node know. */
import { readdirSync, readFileSync } from 'node:fs'
import { constants, monitorEventLoopDelay, PerformanceObserver } from 'node:perf_hooks'
import { getHeapSpaceStatistics } from 'node:v8'
import { type ByLabel, counter, type Family, gauge, Histogram } from './exposition.ts'

/** Each tick of the monitor wakes an idle process. */
const LOOP_RESOLUTION_SEC = 1
const GC_BUCKETS_SEC = [0.001, 0.01, 0.1, 1, 2, 5]
const GC_KINDS = new Map<number, string>([
  [constants.NODE_PERFORMANCE_GC_MAJOR, 'major'],
  [constants.NODE_PERFORMANCE_GC_MINOR, 'minor'],
  [constants.NODE_PERFORMANCE_GC_INCREMENTAL, 'incremental'],
  [constants.NODE_PERFORMANCE_GC_WEAKCB, 'weakcb'],
])

/** Watches the process from now on; the returned function is for each scrape. */
export function watchProcess(): () => readonly Family[] {
  const loop = watchLoop()
  const collections = watchCollections()
  return () => [
    ...cpu(),
    gauge('process_start_time_seconds', 'When the process started, since the epoch.', performance.timeOrigin / 1e3),
    gauge('process_resident_memory_bytes', 'Resident memory.', process.memoryUsage.rss()),
    ...(process.platform === 'linux' ? linux() : []),
    ...loop(),
    gauge('nodejs_active_resources', 'What keeps the event loop alive, by type.', activeResources()),
    ...heap(),
    collections(),
    version(),
  ]
}

function cpu(): Family[] {
  const { user, system } = process.cpuUsage()
  return [
    counter('process_cpu_user_seconds_total', 'Processor time in the program.', user / 1e6),
    counter('process_cpu_system_seconds_total', 'Processor time in the kernel.', system / 1e6),
    counter('process_cpu_seconds_total', 'Processor time.', (user + system) / 1e6),
  ]
}

function linux(): Family[] {
  const status = readFileSync('/proc/self/status', 'utf8')
  const limits = readFileSync('/proc/self/limits', 'utf8')
  const bytes = (key: string) => 1024 * Number(new RegExp(`^${key}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1] ?? 0)
  return [
    gauge('process_virtual_memory_bytes', 'Virtual memory.', bytes('VmSize')),
    gauge('process_heap_bytes', 'Data segments.', bytes('VmData')),
    // Without the one that this look takes.
    gauge('process_open_fds', 'Open file descriptors.', readdirSync('/proc/self/fd').length - 1),
    gauge(
      'process_max_fds',
      'File descriptors that may be open.',
      Number(/^Max open files\s+(\d+)/m.exec(limits)?.[1] ?? Number.POSITIVE_INFINITY),
    ),
  ]
}

/** Each scrape tells of the time since the one before. */
function watchLoop(): () => Family[] {
  const delays = monitorEventLoopDelay({ resolution: LOOP_RESOLUTION_SEC * 1_000 })
  delays.enable()
  // A sample is the time between two ticks of the monitor: undisturbed, it is the resolution itself.
  const seconds = (nanoseconds: number) =>
    delays.count === 0 ? 0 : Math.max(0, nanoseconds / 1e9 - LOOP_RESOLUTION_SEC)
  const lag = (name: string, nanoseconds: number) =>
    gauge(`nodejs_eventloop_lag_${name}_seconds`, `Lag of the event loop: ${name}.`, seconds(nanoseconds))
  return () => {
    const families = [
      lag('min', delays.min),
      lag('max', delays.max),
      lag('mean', delays.mean),
      ...[50, 90, 99].map((percent) => lag(`p${percent}`, delays.percentile(percent))),
    ]
    delays.reset()
    return families
  }
}

function activeResources(): ByLabel {
  const values: Record<string, number> = {}
  for (const type of process.getActiveResourcesInfo()) values[type] = (values[type] ?? 0) + 1
  return { label: 'type', values }
}

function heap(): Family[] {
  const { heapTotal, heapUsed, external } = process.memoryUsage()
  const spaces = getHeapSpaceStatistics()
  const bySpace = (of: (space: (typeof spaces)[number]) => number): ByLabel => ({
    label: 'space',
    values: Object.fromEntries(spaces.map((space) => [space.space_name.replace(/_space$/, ''), of(space)])),
  })
  return [
    gauge('nodejs_heap_size_total_bytes', 'Size of the heap.', heapTotal),
    gauge('nodejs_heap_size_used_bytes', 'Used of the heap.', heapUsed),
    gauge('nodejs_external_memory_bytes', 'Memory that objects of the heap hold outside of it.', external),
    gauge(
      'nodejs_heap_space_size_total_bytes',
      'Size of each space of the heap.',
      bySpace(({ space_size }) => space_size),
    ),
    gauge(
      'nodejs_heap_space_size_used_bytes',
      'Used of each space of the heap.',
      bySpace(({ space_used_size }) => space_used_size),
    ),
    gauge(
      'nodejs_heap_space_size_available_bytes',
      'Free in each space of the heap.',
      bySpace(({ space_available_size }) => space_available_size),
    ),
  ]
}

function watchCollections(): () => Family {
  const byKind = new Map([...GC_KINDS.values()].map((kind) => [kind, new Histogram(GC_BUCKETS_SEC)]))
  const observer = new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) byKind.get(kindOf(entry) ?? '')?.observe(entry.duration / 1e3)
  })
  observer.observe({ entryTypes: ['gc'] })
  return () => ({
    name: 'nodejs_gc_duration_seconds',
    help: 'Garbage collections, by kind.',
    type: 'histogram',
    samples: [...byKind].flatMap(([kind, histogram]) => histogram.samples({ kind })),
  })
}

function kindOf(entry: object): string | undefined {
  const detail: unknown = 'detail' in entry ? entry.detail : undefined
  if (typeof detail !== 'object' || detail === null || !('kind' in detail)) return undefined
  return GC_KINDS.get(Number(detail.kind))
}

function version(): Family {
  const [major = '', minor = '', patch = ''] = process.versions.node.split('.')
  const labels = { version: process.version, major, minor, patch }
  return {
    name: 'nodejs_version_info',
    help: 'Version of Node.',
    type: 'gauge',
    samples: [{ labels, value: 1 }],
  }
}
