/** What work takes of the processor, in milliseconds: how long it takes by the clock is up to whoever else needs the machine. */
export function effortOf<T>(work: () => T): { readonly result: T; readonly ms: number } {
  const before = process.cpuUsage()
  const result = work()
  const { user, system } = process.cpuUsage(before)
  return { result, ms: (user + system) / 1000 }
}
