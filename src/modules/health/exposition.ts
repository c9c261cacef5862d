/** The text format of Prometheus, version 0.0.4, and histograms that cost two additions a value. */

export type Labels = Readonly<Record<string, string>>

export interface Sample {
  readonly value: number
  readonly labels?: Labels
  /** Of a histogram: `_bucket`, `_sum` or `_count`. */
  readonly suffix?: string
}

/** One metric, as it stands at a scrape. */
export interface Family {
  readonly name: string
  readonly help: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly samples: readonly Sample[]
}

export const TEXT_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

/** A number without labels, or one for each value of a label. */
export function counter(name: string, help: string, value: number | ByLabel): Family {
  return { name, help, type: 'counter', samples: samplesOf(value) }
}

export function gauge(name: string, help: string, value: number | ByLabel): Family {
  return { name, help, type: 'gauge', samples: samplesOf(value) }
}

export interface ByLabel {
  readonly label: string
  readonly values: Readonly<Record<string, number>>
}

function samplesOf(value: number | ByLabel): Sample[] {
  if (typeof value === 'number') return [{ value }]
  return Object.entries(value.values).map(([one, count]) => ({ labels: { [value.label]: one }, value: count }))
}

export const toText = (families: readonly Family[]): string =>
  families.map((family) => `${linesOf(family).join('\n')}\n`).join('\n')

function linesOf({ name, help, type, samples }: Family): string[] {
  return [
    `# HELP ${name} ${help}`,
    `# TYPE ${name} ${type}`,
    ...samples.map(({ suffix = '', labels = {}, value }) => `${name}${suffix}${braced(labels)} ${numeral(value)}`),
  ]
}

function braced(labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escaped(value)}"`)
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`
}

const escaped = (value: string): string => value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')

function numeral(value: number): string {
  if (value === Number.POSITIVE_INFINITY) return '+Inf'
  if (value === Number.NEGATIVE_INFINITY) return '-Inf'
  return `${value}`
}

/** Counts of values up to each bound. */
export class Histogram {
  readonly #bounds: readonly number[]
  /** The last one is for all that is above every bound. */
  readonly #counts: number[]
  #sum = 0

  constructor(bounds: readonly number[]) {
    this.#bounds = bounds
    this.#counts = [...bounds.map(() => 0), 0]
  }

  observe(value: number): void {
    let at = 0
    while (at < this.#bounds.length && value > (this.#bounds[at] ?? 0)) at++
    this.#counts[at] = (this.#counts[at] ?? 0) + 1
    this.#sum += value
  }

  /** One that has seen nothing has no lines: most operations are never called. */
  samples(labels: Labels = {}): Sample[] {
    if (this.#counts.every((count) => count === 0)) return []
    let count = 0
    const buckets = this.#counts.map((own, at) => {
      count += own
      return { suffix: '_bucket', labels: { le: `${this.#bounds[at] ?? '+Inf'}`, ...labels }, value: count }
    })
    return [...buckets, { suffix: '_sum', labels, value: this.#sum }, { suffix: '_count', labels, value: count }]
  }
}
