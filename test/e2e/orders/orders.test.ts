/** Orders of a real city: every trigger, with real commands, over HTTP and the command line. */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { checkOrder, getOrderRun, listOrders } from '../../../src/contract/automation/orders.ts'
import { cli } from '../../support/cli.ts'
import { createCity } from '../../support/config-city.ts'
import { assertProblem, eventually } from '../../support/http.ts'
import { OrderedCity } from '../../support/ordered-city.ts'
import { type RunningSupervisor, startSupervisor } from '../../support/supervisor.ts'

let supervisor: RunningSupervisor
let orders: OrderedCity
before(async () => {
  supervisor = await startSupervisor()
  orders = new OrderedCity(await createCity(supervisor, 'alpha'))
})
after(async () => {
  orders.city.api.close()
  await supervisor[Symbol.asyncDispose]()
})

const path = (rest: string): string => `${orders.city.base}/orders${rest}`
const svcctl = (...words: readonly string[]) =>
  cli(['order', ...words], { env: { SVC_API: supervisor.url, SVC_CITY: 'alpha' } })
const NEVER = 'trigger = "manual"'

// The clock is waited for while everything else happens, in a city that nobody suspends.
suite('orders', { concurrency: 2 }, () => {
  test('a cron order runs at its minute', { timeout: 120_000 }, async () => {
    const city = await createCity(supervisor, 'clocked')
    const clocked = new OrderedCity(city)
    const order = await clocked.save(
      'minutely',
      'trigger = "cron"',
      'schedule = "* * * * *"',
      'tz = "Asia/Kolkata"',
      'exec = "true"',
    )
    assert.equal(order.tz, 'Asia/Kolkata')
    assert.match(order.next_run_at ?? '', /:00\.000Z$/)
    const [run] = await clocked.ended('minutely', 1, 90_000)
    const time = Date.parse(run?.scheduled_for ?? '')
    // Of one that is saved in the last moment of a minute, what is read may be the time after.
    assert.ok([0, 60_000].includes(Date.parse(order.next_run_at ?? '') - time), `${run?.scheduled_for}`)
    assert.ok(Date.parse(run?.started_at ?? '') >= time)
    assert.equal((await clocked.get('minutely')).next_run_at, new Date(time + 60_000).toISOString())
    city.api.close()
  })

  suite('one after the other', { concurrency: 1 }, () => {
    test('an order runs by hand: its command has its surroundings, and the run its end', {
      timeout: 60_000,
    }, async () => {
      const order = await orders.save(
        'greet',
        'description = "says hello"',
        NEVER,
        `exec = 'echo "$SVC_ORDER $SVC_RUN_ID $SVC_VAR_WHOM $GREETING"; cat; exit 0'`,
        '[order.vars]',
        'whom = "world"',
        '[order.env]',
        'GREETING = "hello"',
      )
      assert.deepEqual(
        [order.valid, order.enabled, order.trigger, order.action, order.overlap, order.timeout, order.running],
        [true, true, 'manual', 'exec', 'skip', '5m', 0],
      )
      assert.deepEqual(order.env, { GREETING: '***' })
      const run = await orders.run('greet', { vars: { whom: 'you' } })
      assert.deepEqual([run.status, run.source, run.trigger, run.vars], ['running', 'api', 'manual', { whom: 'you' }])
      const [ended] = await orders.ended('greet', 1)
      assert.deepEqual([ended?.id, ended?.status, ended?.exit_code], [run.id, 'succeeded', 0])
      const { output = '' } = await orders.city.api.ask(getOrderRun, path(`/history/${run.id}`))
      const [said = '', stdin = '{}'] = output.split('\n')
      assert.equal(said, `greet ${run.id} you hello`)
      assert.deepEqual(JSON.parse(stdin).vars, { whom: 'you' })
      const events = await orders.events('greet')
      assert.deepEqual(
        events.map(({ type, payload }) => [type, payload['run_id'], payload['source']]),
        [
          ['order.fired', run.id, 'api'],
          ['order.completed', run.id, 'api'],
        ],
      )
      const last = (await orders.get('greet')).last_run
      assert.deepEqual([last?.id, last?.status], [run.id, 'succeeded'])
    })

    test('one run at a time: another by hand is refused, unless it is forced', { timeout: 60_000 }, async () => {
      await orders.save('slow', NEVER, `exec = 'until [ -e release ]; do sleep 0.05; done'`)
      const first = await orders.run('slow')
      assertProblem(
        await orders.city.post('/orders/slow/run', {}),
        'conflict-wrong-state',
        /^conflict: a run of slow is under way/,
      )
      const second = await orders.run('slow', { force: true })
      assert.equal((await orders.get('slow')).running, 2)
      orders.city.write('release', '')
      const ended = await orders.ended('slow', 2)
      assert.deepEqual(ended.map(({ id }) => id).sort(), [first.id, second.id].sort())
    })

    test('how a command ends is how its run ends', { timeout: 60_000 }, async () => {
      const ends = [
        ['exit 3', 'failed', { exit_code: 3 }],
        ['kill -9 $$', 'failed', { signal: 'SIGKILL' }],
        ['sleep 30', 'timed_out', {}],
      ] as const
      for (const [index, [command, status, more]] of ends.entries()) {
        await orders.save(`end-${index}`, NEVER, `exec = '${command}'`, 'timeout = "1s"')
        await orders.run(`end-${index}`)
        const [run] = await orders.ended(`end-${index}`, 1)
        assert.equal(run?.status, status)
        for (const [key, value] of Object.entries(more)) assert.equal(Reflect.get(run ?? {}, key), value)
        assert.ok(run?.error !== undefined)
        assert.equal((await orders.events(`end-${index}`)).at(-1)?.type, 'order.failed')
      }
    })

    test('a cooldown runs again and again, and stops where it is disabled', { timeout: 60_000 }, async () => {
      await orders.save('tick', 'trigger = "cooldown"', 'interval = "1s"', `exec = 'echo $SVC_RUN_ID >> ticks'`)
      const runs = await orders.ended('tick', 3)
      const starts = runs.map(({ started_at: at }) => Date.parse(at ?? '')).sort((a, b) => a - b)
      for (const [index, at] of starts.slice(1).entries()) assert.ok(at - (starts[index] ?? 0) >= 1_000)
      const { status, text } = await orders.city.post('/orders/tick/disable')
      assert.equal(status, 200, text)
      const {
        enabled,
        enabled_by: by,
        reason,
        running,
      } = await eventually('it rests', async () => {
        const order = await orders.get('tick')
        return order.running === 0 ? order : undefined
      })
      assert.deepEqual([enabled, by, reason, running], [false, 'api', 'it is disabled', 0])
      const { length } = await orders.runs('tick')
      assert.equal(orders.lines('ticks').length, length)
      assert.equal((await orders.city.events('order.disabled')).length, 1)
    })

    test('a condition is checked, and its run begins when it holds', { timeout: 60_000 }, async () => {
      await orders.save(
        'full',
        'trigger = "condition"',
        `check = 'test -e full'`,
        'interval = "1s"',
        `exec = 'rm full; echo "$SVC_RUN_ID" >> emptied'`,
      )
      const checked = await eventually('it was checked', async () => {
        const order = await orders.get('full')
        return order.evaluated_at === undefined ? undefined : order
      })
      assert.deepEqual([checked.due, checked.error], [false, undefined])
      assert.equal((await orders.runs('full')).length, 0)
      const by = await orders.city.api.ask(checkOrder, path('/full/check'))
      assert.deepEqual([by.due, by.exit_code], [false, 1])
      orders.city.write('full', '')
      const [run] = await orders.ended('full', 1)
      assert.deepEqual([run?.status, run?.reason], ['succeeded', 'condition: its check passed (exit 0)'])
      assert.deepEqual(orders.lines('emptied'), [run?.id])
    })

    test('a check that comes to no verdict starts nothing, and says why', { timeout: 60_000 }, async () => {
      await orders.save('odd', 'trigger = "condition"', `check = 'no-such-program'`, 'interval = "1s"', 'exec = "true"')
      const order = await eventually('it was checked', async () => {
        const seen = await orders.get('odd')
        return seen.error === undefined ? undefined : seen
      })
      assert.match(order.error ?? '', /127/)
      assert.deepEqual([order.due, (await orders.runs('odd')).length], [false, 0])
      const lasting = ['trigger = "condition"', 'check = "sleep 100"', 'check_timeout = "1s"', 'interval = "1h"']
      await orders.save('lasting', ...lasting, 'exec = "true"')
      await eventually('it took too long', async () => {
        const { error } = await orders.get('lasting')
        return error === 'it took longer than its `check_timeout`' ? error : undefined
      })
    })

    test('an event order is handed every event of a burst, once and in order', { timeout: 120_000 }, async () => {
      await orders.save(
        'collect',
        'trigger = "event"',
        'on = "build.*"',
        'match = { "job.kind" = "lint" }',
        `exec = 'cat >> collected; echo >> collected'`,
      )
      const burst = Array.from({ length: 300 }, (_, n) => ({ n, job: { kind: n % 3 === 0 ? 'test' : 'lint' } }))
      for (let at = 0; at < burst.length; at += 30)
        await Promise.all(burst.slice(at, at + 30).map((payload) => orders.emit('build.failed', payload)))
      const wanted = (await orders.city.events('build.failed'))
        .map(({ payload }) => payload)
        .filter(({ job }) => JSON.stringify(job) === '{"kind":"lint"}')
        .map(({ n }) => n)
      assert.equal(wanted.length, 200)
      const handed = () =>
        orders
          .lines('collected')
          .map(
            (
              line,
            ): { readonly count: number; readonly events: readonly { readonly payload: { readonly n: number } }[] } =>
              JSON.parse(line),
          )
      await eventually('all are handed', () =>
        handed().flatMap(({ events }) => events).length >= 200 ? true : undefined,
      )
      assert.deepEqual(
        handed().flatMap(({ events }) => events.map(({ payload }) => payload.n)),
        wanted,
      )
      for (const { count, events } of handed()) assert.ok(count === events.length && count <= 100)
      const runs = await orders.ended('collect', handed().length)
      assert.equal(
        runs.reduce((sum, { event_count: count = 0 }) => sum + count, 0),
        200,
      )
    })

    test('a run for each event, with variables of it', { timeout: 60_000 }, async () => {
      await orders.save(
        'each',
        'trigger = "event"',
        'on = "deploy.done"',
        'batch = false',
        `exec = 'echo "$SVC_VAR_WHERE" >> deployed'`,
        '[order.vars]',
        'where = "{{ event.payload.where }}"',
      )
      for (const where of ['east; rm -rf /', 'west', '$(id)']) await orders.emit('deploy.done', { where })
      await orders.ended('each', 3)
      assert.deepEqual(orders.lines('deployed'), ['east; rm -rf /', 'west', '$(id)'])
    })

    test('orders that are broken or skipped never run, and say why', { timeout: 60_000 }, async () => {
      const broken = await orders.save('broken', 'trigger = "cron"', 'schedule = "0 0 30 2 *"', 'exec = "true"')
      assert.deepEqual([broken.valid, broken.due], [false, false])
      assert.deepEqual(
        broken.issues.map(({ file, line, key }) => `${file}:${line} ${key}`),
        ['orders/broken.toml:3 order.schedule'],
      )
      assertProblem(await orders.city.post('/orders/broken/run', {}), 'conflict-config', /not valid/)
      const { items } = await orders.city.api.ask(listOrders, path('?valid=false'))
      assert.deepEqual(
        items.map(({ name }) => name),
        ['broken'],
      )
    })

    test('what the city says otherwise is in force, and what fits nothing is told', { timeout: 60_000 }, async () => {
      await orders.save('loud', 'trigger = "cron"', 'schedule = "0 0 1 1 *"', 'exec = "true"', 'timeout = "1h"')
      await orders.save('unwanted', NEVER, 'exec = "true"')
      const toml = orders.city.read('city.toml')
      orders.city.write(
        'city.toml',
        [
          toml,
          '[orders]\nskip = ["unwanted"]\nmax_timeout = "10m"',
          '[[orders.overrides]]\nname = "loud"\nschedule = "0 0 2 2 *"\nenabled = false',
          '[[orders.overrides]]\nname = "nobody"\nenabled = false\n',
        ].join('\n'),
      )
      const loud = await eventually('it is in force', async () => {
        const order = await orders.get('loud')
        return order.schedule === '0 0 2 2 *' ? order : undefined
      })
      assert.deepEqual([loud.enabled, loud.enabled_by, loud.timeout], [false, 'override', '10m'])
      assert.deepEqual(loud.overridden, ['enabled', 'schedule'])
      const { items, warnings = [] } = await orders.city.api.ask(listOrders, path(''))
      assert.ok(!items.some(({ name }) => name === 'unwanted'))
      assert.equal(warnings.length, 1)
      assert.match(warnings[0] ?? '', /^city\.toml:\d+: the city has no order nobody/)
      await orders.city.post('/orders/loud/enable')
      const enabled = await orders.get('loud')
      assert.deepEqual([enabled.enabled, enabled.enabled_by], [true, 'api'])
      orders.city.write('city.toml', toml)
      await eventually('the files say so too', async () =>
        (await orders.get('loud')).enabled_by === 'file' ? true : undefined,
      )
    })

    test('a suspended city runs nothing by itself, and goes on', { timeout: 60_000 }, async () => {
      await orders.city.api.call('PATCH', orders.city.base, { body: { suspended: true } })
      await orders.save('held', 'trigger = "event"', 'on = "held.event"', 'exec = "true"')
      await orders.emit('held.event', {})
      const order = await eventually('it is seen', async () => {
        const held = await orders.get('held')
        return held.suspended ? held : undefined
      })
      assert.deepEqual([order.due, order.reason], [false, 'it is suspended'])
      assert.equal((await orders.run('held')).status, 'running')
      await orders.ended('held', 1)
      await orders.city.api.call('PATCH', orders.city.base, { body: { suspended: false } })
      const [run] = await orders.ended('held', 2)
      assert.deepEqual([run?.source, run?.event_count], ['tick', 1])
    })

    test('the command line lists, shows, runs and waits', { timeout: 90_000 }, async () => {
      await orders.save('work', NEVER, `exec = 'echo done; exit $SVC_VAR_CODE'`, '[order.vars]', 'code = "0"')
      const listed = await svcctl('list')
      assert.match(listed.out, /work\tenabled\tmanual/)
      const good = await svcctl('run', 'work', '--wait')
      assert.equal(good.code, 0, good.err)
      assert.match(good.out, /succeeded/)
      const bad = await svcctl('run', 'work', '--wait', '--var', 'code=4')
      assert.equal(bad.code, 9)
      assert.match(bad.err, /work: failed: exit code 4/)
      const [last] = await orders.runs('work')
      const shown = await svcctl('history', last?.id ?? '')
      assert.match(shown.out, /done/)
      const history = await svcctl('history', 'work', '--status', 'failed', '-o', 'name')
      assert.equal(history.out.trim(), last?.id)
      const check = await svcctl('check', 'work')
      assert.deepEqual([check.code, /false/.test(check.out)], [1, true])
      assert.equal((await svcctl('disable', 'work')).code, 0)
      assert.match((await svcctl('get', 'work')).out, /disabled/)
      assert.equal((await svcctl('enable', 'work')).code, 0)
      assert.equal((await svcctl('get', 'nobody')).code, 3)
    })

    test('runs come in pages, by order and status', { timeout: 60_000 }, async () => {
      await orders.save('paged', NEVER, 'exec = "true"')
      for (let n = 0; n < 5; n++) await orders.run('paged', { force: true })
      await orders.ended('paged', 5)
      const seen: string[] = []
      let cursor = ''
      do {
        const { body } = await orders.city.get(`/orders/history?name=paged&limit=2${cursor}`)
        assert.ok(typeof body === 'object' && body !== null && 'items' in body && Array.isArray(body.items))
        assert.ok('total' in body && body.total === 5)
        seen.push(...body.items.map(({ id }) => String(id)))
        cursor = 'next_cursor' in body ? `&cursor=${String(body.next_cursor)}` : ''
      } while (cursor !== '')
      assert.equal(new Set(seen).size, 5)
      assert.equal((await orders.runs('paged', '&status=failed')).length, 0)
      assertProblem(await orders.city.get('/orders/history?name=other&cursor=v1:AAAA'), 'invalid-cursor')
    })
  })
})
