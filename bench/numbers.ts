/** Medians and percentiles; no averages, because one stall must not hide in one. */

export const median = (values: readonly number[]): number => percentile(values, 50)

/** The value at or below which `percent` of the values lie; NaN where there are none. */
export function percentile(values: readonly number[], percent: number): number {
  const sorted = Float64Array.from(values).sort()
  return sorted[Math.min(sorted.length - 1, Math.floor((percent / 100) * sorted.length))] ?? Number.NaN
}

/** Microseconds on the machine's monotonic clock: the same in every process, so a stamp can travel in a payload. */
export const machineMicros = (): number => Number(process.hrtime.bigint() / 1000n)
