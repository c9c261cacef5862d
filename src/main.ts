/**
 * The first file of the program. It is written and loaded so that any Node understands it: one that is too old must say
 * so, and not stumble over the first thing that it does not know.
 */
const OLDEST_NODE = 24

if (Number.parseInt(process.versions.node, 10) < OLDEST_NODE) {
  process.stderr.write(
    `error: svcctl needs Node ${OLDEST_NODE} or newer; this is ${process.version} (${process.execPath})\n` +
      'hint: newer ones are at https://nodejs.org, and in npm: npm install --global node@26\n',
  )
  process.exitCode = 1
} else {
  await import('./start.ts')
}
