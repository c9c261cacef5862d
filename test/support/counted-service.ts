/**
 * A service that notices whether there is another one of it: every life adds its pid to `lives` in its state root, and
 * to `doubled` where one that was there before still runs.
 *
 *   GET /health        200, or 500 once it was told to be sick
 *   GET /pid           its pid
 *   GET /env           its environment
 *   GET /slow?ms=100   its pid, after that time; with `&heard` the head of the answer comes at once
 *   GET /stream        a line at once, and no end
 *   GET /sick          it is sick from now on
 *   GET /exit?code=3   it ends
 *   GET /say?text=x    it writes that, and the end of the line or `end`
 *
 * SERVICE_CHILD=1: it has a child that hides. SERVICE_STUBBORN=1: it does not end when it is asked to. SERVICE_LATE=1000:
 * it listens after that time only.
 */
import { spawn } from 'node:child_process'
import { appendFileSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { setTimeout as after } from 'node:timers'

const { env } = process
const data = join(env['SVC_SERVICE_STATE_ROOT'] ?? '.', 'data')
appendFileSync(join(data, 'lives'), `${process.pid}\n`)
for (const pid of new Set(readFileSync(join(data, 'lives'), 'utf8').trim().split('\n').map(Number)))
  if (pid !== process.pid && isOne(pid)) appendFileSync(join(data, 'doubled'), `${pid} ${process.pid}\n`)

/** It runs this program, for this state root. */
function isOne(pid: number): boolean {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'latin1')
    // Numbers come round: one of a process that has gone may be that of a thread, of this process perhaps.
    const isProcess = new RegExp(`^Tgid:\\s+${pid}$`, 'm').test(status) && !/^State:\s+[ZX]/m.test(status)
    const root = `SVC_SERVICE_STATE_ROOT=${env['SVC_SERVICE_STATE_ROOT'] ?? ''}\0`
    return isProcess && readFileSync(`/proc/${pid}/environ`, 'utf8').includes(root)
  } catch {
    return false
  }
}

if (env['SERVICE_CHILD'] === '1') spawn('sh', ['-c', 'exec sleep 100000'], { stdio: 'ignore', detached: true }).unref()
process.on('SIGTERM', () => {
  if (env['SERVICE_STUBBORN'] !== '1') process.exit(0)
})

let sick = false
const server = createServer((request, response) => {
  const { pathname, searchParams } = new URL(request.url ?? '/', 'http://service')
  const say = (text: string) => response.end(text)
  if (pathname === '/health') return void response.writeHead(sick ? 500 : 200).end()
  if (pathname === '/env') return void say(JSON.stringify(env))
  if (searchParams.has('heard')) response.flushHeaders()
  if (pathname === '/slow') return void after(() => say(String(process.pid)), Number(searchParams.get('ms')))
  if (pathname === '/stream') return void response.write(`${process.pid}\n`)
  if (pathname === '/sick') sick = true
  if (pathname === '/exit') process.exit(Number(searchParams.get('code') ?? 0))
  if (pathname === '/say') process.stdout.write(`${searchParams.get('text') ?? ''}${searchParams.get('end') ?? '\n'}`)
  say(String(process.pid))
})
const { SVC_SERVICE_SOCKET: socket, PORT: port, HOST: host } = env
after(
  () => {
    if (socket !== undefined) server.listen(socket)
    else server.listen(Number(port), host)
  },
  Number(env['SERVICE_LATE'] ?? 0),
)
console.log(`life ${process.pid}`)
