/**
 * Runs what one event of a socket or a timer asks for. An exception there would leave the event loop and end the process with
 * every city; contained, it ends the one exchange that it is about.
 */
export function contained(work: () => void, broke: (error: unknown) => void): void {
  try {
    work()
  } catch (error) {
    broke(error)
  }
}
