/** One suite for every IRC server at hand; the output says on which it ran. */
import assert from 'node:assert/strict'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { after, suite, type TestContext, test } from 'node:test'
import { Journal } from '../../src/bridges/library/journal.ts'
import { BridgeLife, deliveryOf } from '../support/bridge-life.ts'
import { eventually } from '../support/http.ts'
import { IrcPerson } from '../support/irc-person.ts'
import { type IrcWorld, ircWorlds, versionOf } from '../support/irc-worlds.ts'
import { temporaryDirectory } from '../support/temporary.ts'

const { kinds, missing } = ircWorlds()

let channels = 0
/** A channel of its own, in which ana is the operator. */
async function room(world: IrcWorld, ana: IrcPerson): Promise<string> {
  channels += 1
  const channel = `#room${channels}`
  await ana.enter(channel)
  // What the tests before still cause is not of this one.
  ana.lines.length = 0
  if (world.keepsPast !== undefined) {
    ana.send(world.keepsPast(channel))
    await ana.sees(/ MODE /)
  }
  return channel
}

test('which IRC servers there are', (t) => {
  for (const kind of kinds) t.diagnostic(`ran on: ${kind.name} (${versionOf(kind)})`)
  for (const name of missing) t.diagnostic(`not installed: ${name}`)
})

suite('a bridge to IRC', { concurrency: 3 }, () => {
  for (const kind of kinds)
    suite(`on ${kind.name}`, { concurrency: 1 }, () => {
      let number = 0
      const directory = temporaryDirectory()
      let started: Promise<IrcWorld> | undefined
      let person: Promise<IrcPerson> | undefined
      const start = () => {
        started ??= kind.start(directory.path)
        return started
      }
      after(async () => {
        ;(await person)?.[Symbol.dispose]()
        await (await started)?.[Symbol.asyncDispose]()
        directory[Symbol.dispose]()
      })
      const stateRoot = () => {
        number += 1
        const root = join(directory.path, `state-${number}`)
        mkdirSync(root)
        return root
      }
      const withRoom =
        (
          work: (place: {
            world: IrcWorld
            channel: string
            ana: IrcPerson
            root: string
            t: TestContext
          }) => Promise<void>,
        ) =>
        async (t: TestContext) => {
          const world = await start()
          person ??= IrcPerson.connect(world.port, 'ana')
          const ana = await person
          const channel = await room(world, ana)
          await work({ world, channel, ana, root: stateRoot(), t })
        }

      test(
        'what people say is heard once, without markup, and with whom it speaks to',
        withRoom(async ({ world, channel, ana, root }) => {
          await using life = new BridgeLife({ port: world.port, channel, root })
          await life.ready()
          ana.say(channel, 'mayor: is \u0002it\u0002 \u000304,01done\u0003?')
          ana.say(channel, '\u0001ACTION waves\u0001')
          ana.say(channel, '\u0001VERSION\u0001')
          ana.send(`NOTICE ${channel} :mayor: beep`)
          ana.say('svc', 'just between us')
          ana.say(channel, 'the last')
          await eventually('the last is heard', () => life.supervisor.posted.find(({ text }) => text === 'the last'))
          const heard = life.supervisor.posted.map(({ conversation, actor, text, explicit_target: to }) => [
            conversation.kind,
            conversation.conversation_id,
            actor.display_name === ana.nick,
            actor.is_bot,
            text,
            to,
          ])
          const all = [
            ['room', channel, true, false, 'mayor: is it done?', 'mayor'],
            ['room', channel, true, false, '* waves', undefined],
            ['room', channel, true, true, 'mayor: beep', undefined],
            ['dm', ana.nick, true, false, 'just between us', undefined],
            ['room', channel, true, false, 'the last', undefined],
          ]
          assert.deepEqual(
            heard.filter(([one]) => one === 'room'),
            all.filter(([one]) => one === 'room'),
          )
          await eventually('the private line is heard', () =>
            life.supervisor.posted.find(({ conversation }) => conversation.kind === 'dm'),
          )
          assert.ok(!ana.lines.some((line) => line.includes('VERSION')), 'nobody is told what runs here')
        }),
      )

      test(
        'what is said appears once and in order; nothing in it is a command; its own words are not heard',
        withRoom(async ({ world, channel, ana, root }) => {
          await using life = new BridgeLife({ port: world.port, channel, root })
          await life.ready()
          life.supervisor.give(
            deliveryOf('dl-1', channel, `one\r\nQUIT :gone\nPRIVMSG ${channel} :forged\u0000\u0001ACTION x\u0001`),
          )
          await eventually('it is acknowledged', () => life.supervisor.acked.get('dl-1'))
          life.supervisor.give(deliveryOf('dl-2', ana.nick, 'in private'))
          await eventually('it is acknowledged', () => life.supervisor.acked.get('dl-2'))
          await ana.sees(/in private/)
          assert.deepEqual(ana.heard('svc', channel), ['one', 'QUIT :gone', `PRIVMSG ${channel} :forgedACTION x`])
          assert.deepEqual(ana.heard('svc', ana.nick), ['in private'])
          assert.deepEqual(life.supervisor.posted, [])
        }),
      )

      test(
        'long texts go in parts that lose nothing',
        withRoom(async ({ world, channel, ana, root }) => {
          await using life = new BridgeLife({ port: world.port, channel, root })
          await life.ready()
          const words = Array.from({ length: 300 }, (_, index) => `wörd${index}`).join(' ')
          life.supervisor.give(deliveryOf('dl-long', channel, words))
          await eventually('it is acknowledged', () => life.supervisor.acked.get('dl-long'))
          await ana.sees(/wörd299/)
          const parts = ana.heard('svc', channel)
          assert.ok(parts.length > 5)
          assert.equal(parts.join(' '), words)
        }),
      )

      test(
        'what cannot be said is a failure with its reason, and what follows is said',
        withRoom(async ({ world, channel, ana, root }) => {
          await using life = new BridgeLife({ port: world.port, channel, root })
          await life.ready()
          ana.send(`MODE ${channel} +m`)
          const failed = (id: string) => eventually(`${id} fails`, () => life.supervisor.failed.get(id))
          const kindOf = async (id: string) => {
            const outcome = await failed(id)
            return outcome.delivered ? undefined : outcome.kind
          }
          life.supervisor.give(deliveryOf('dl-nobody', 'nobodyhere', 'hello'))
          life.supervisor.give(deliveryOf('dl-service', 'NickServ', 'DROP svc'))
          life.supervisor.give(deliveryOf('dl-mask', '$$*', 'hello all'))
          life.supervisor.give(deliveryOf('dl-elsewhere', '#elsewhere', 'hello'))
          assert.equal(await kindOf('dl-nobody'), 'transient')
          assert.equal(await kindOf('dl-service'), 'permanent')
          assert.equal(await kindOf('dl-mask'), 'permanent')
          assert.equal(await kindOf('dl-elsewhere'), 'not_found')
          ana.send(`MODE ${channel} -m`)
          life.supervisor.give(deliveryOf('dl-after', channel, 'after all that'))
          await eventually('it is acknowledged', () => life.supervisor.acked.get('dl-after'))
          await ana.sees(/after all that/)
          assert.deepEqual(ana.heard('svc', channel), ['after all that'])
        }),
      )

      test(
        'cut off, it comes back, is told what it missed, and says what it had begun once',
        withRoom(async ({ world, channel, ana, root, t }) => {
          {
            await using first = new BridgeLife({ port: world.port, channel, root })
            await first.ready()
            ana.say(channel, 'before')
            await eventually('it is heard', () => first.supervisor.posted.find(({ text }) => text === 'before'))
            first.supervisor.give(deliveryOf('dl-known', channel, 'known as said'))
            await eventually('it is acknowledged', () => first.supervisor.acked.get('dl-known'))
            first.supervisor.give(deliveryOf('dl-doubt', channel, 'in doubt'))
            await eventually('it is acknowledged', () => first.supervisor.acked.get('dl-doubt'))
          }
          await ana.sees(/ QUIT /)
          for (let line = 1; line <= 7; line += 1) ana.say(channel, `missed ${line}`)
          // A life that was killed right behind its words has begun them, and knows no more.
          const forgetful = stateRoot()
          {
            using journal = new Journal(forgetful)
            journal.begin(deliveryOf('dl-doubt', channel, 'in doubt'))
          }
          {
            await using second = new BridgeLife({ port: world.port, channel, root })
            await second.ready()
            second.supervisor.give(deliveryOf('dl-known', channel, 'known as said', { attempt: 2 }))
            await eventually('it is acknowledged again', () => second.supervisor.acked.get('dl-known'))
            if (world.history) {
              await eventually('it is told', () =>
                second.supervisor.posted.find(({ text }) => text === 'missed 7'),
              ).catch((e) => {
                console.error(second.world.logged.join(''), ana.lines.slice(-30), second.supervisor)
                throw e
              })
              assert.deepEqual(
                second.supervisor.posted.map(({ text }) => text),
                [1, 2, 3, 4, 5, 6, 7]
                  .slice(second.supervisor.posted.length === 7 ? 0 : 2)
                  .map((line) => `missed ${line}`),
              )
            }
            assert.deepEqual(second.supervisor.past, [])
          }
          await using third = new BridgeLife({ port: world.port, channel, root: forgetful })
          await eventually('it goes on by itself', () => third.supervisor.acked.get('dl-doubt'))
          await eventually('all of it has come', () =>
            ana.heard('svc', channel).filter((text) => text === 'in doubt').length >= (world.history ? 1 : 2)
              ? true
              : undefined,
          )
          t.diagnostic(
            `${world.name}: what was in doubt was said ${ana.heard('svc', channel).filter((text) => text === 'in doubt').length}×`,
          )
          assert.deepEqual(ana.heard('svc', channel), [
            'known as said',
            'in doubt',
            ...(world.history ? [] : ['in doubt']),
          ])
        }),
      )

      test(
        'kicked, it comes back, and what waits is said then',
        withRoom(async ({ world, channel, ana, root }) => {
          await using life = new BridgeLife({ port: world.port, channel, root })
          await life.ready()
          ana.send(`KICK ${channel} svc :behave`)
          await ana.sees(/ KICK /)
          life.supervisor.give(deliveryOf('dl-kicked', channel, 'back again'))
          await eventually('it is said', () => life.supervisor.acked.get('dl-kicked'))
          await ana.sees(/back again/)
          assert.deepEqual(ana.heard('svc', channel), ['back again'])
        }),
      )

      test(
        'in several channels each is heard and spoken to for itself; one that is shut keeps no other waiting',
        withRoom(async ({ world, channel, ana, root }) => {
          const other = `${channel}b`
          const banned = `${channel}c`
          await ana.enter(other)
          await ana.enter(banned)
          ana.send(`MODE ${banned} +b svc!*@*`)
          await ana.sees(/ MODE \S+ \+b /)
          await using life = new BridgeLife({ port: world.port, channel, also: [other, banned], root })
          await eventually('it is in two of them', () =>
            life.chat.health()['channels'] === `${channel} ${other}` ? true : undefined,
          )
          life.supervisor.give(deliveryOf('dl-banned', banned, 'let me in'))
          for (const [index, target] of [channel, other, channel, other].entries())
            life.supervisor.give(deliveryOf(`dl-${index}`, target, `line ${index}`))
          ana.say(channel, 'here')
          ana.say(other, 'there')
          for (const index of [0, 1, 2, 3])
            await eventually(`line ${index} is acknowledged`, () => life.supervisor.acked.get(`dl-${index}`))
          await ana.sees(/line 3/)
          assert.deepEqual(ana.heard('svc', channel).toSorted(), ['line 0', 'line 2'])
          assert.deepEqual(ana.heard('svc', other).toSorted(), ['line 1', 'line 3'])
          await eventually('both are heard', () => (life.supervisor.posted.length === 2 ? true : undefined))
          assert.deepEqual(
            life.supervisor.posted.map(({ conversation, text }) => [conversation.conversation_id, text]).toSorted(),
            [
              [channel, 'here'],
              [other, 'there'],
            ],
          )
          assert.equal(life.supervisor.acked.has('dl-banned'), false)
          ana.send(`MODE ${banned} -b svc!*@*`)
          await eventually('it is said once it is let in', () => life.supervisor.acked.get('dl-banned'))
          await ana.sees(/let me in/)
          assert.deepEqual(ana.heard('svc', banned), ['let me in'])
          for (const one of [other, banned]) ana.send(`PART ${one}`)
        }),
      )

      test(
        'banned where it is, it does not lose what it should say',
        withRoom(async ({ world, channel, ana, root }) => {
          await using life = new BridgeLife({ port: world.port, channel, root })
          await life.ready()
          ana.send(`MODE ${channel} +b svc!*@*`)
          await ana.sees(/ MODE \S+ \+b /)
          life.supervisor.give(deliveryOf('dl-muted', channel, 'can you hear me'))
          ana.send(`KICK ${channel} svc :out`)
          await eventually('it is refused', () =>
            life.world.logged.some((line) => line.includes('banned from it')) ? true : undefined,
          )
          ana.send(`MODE ${channel} -b svc!*@*`)
          const muted = () => life.supervisor.acked.get('dl-muted') ?? life.supervisor.failed.get('dl-muted')
          const end = await eventually('it is said, or was refused in the moment before', muted)
          if (typeof end !== 'string') assert.ok(!end.delivered && end.kind === 'auth', JSON.stringify(end))
          life.supervisor.give(deliveryOf('dl-back', channel, 'back again'))
          await eventually('it is said', () => life.supervisor.acked.get('dl-back'))
          await ana.sees(/back again/)
          assert.deepEqual(ana.heard('svc', channel), [
            ...(typeof end === 'string' ? ['can you hear me'] : []),
            'back again',
          ])
        }),
      )

      test(
        'a nick that is taken is no obstacle, and is taken back',
        withRoom(async ({ world, channel, ana, root }) => {
          const other = await IrcPerson.join(world.port, 'svc', channel)
          await using life = new BridgeLife({ port: world.port, channel, root })
          await life.ready()
          assert.equal(life.chat.health()['nick'], 'svc_')
          other.say(channel, 'svc: I am not you')
          await eventually('the namesake is heard', () =>
            life.supervisor.posted.find(({ text }) => text === 'svc: I am not you'),
          )
          other[Symbol.dispose]()
          await ana.sees(/:svc_\S* NICK :?svc$/)
          life.supervisor.give(deliveryOf('dl-nick', channel, 'it is me'))
          await eventually('it is said', () => life.supervisor.acked.get('dl-nick'))
          await ana.sees(/it is me/)
          assert.deepEqual(ana.heard('svc', channel), ['svc: I am not you', 'it is me'])
        }),
      )
    })
})
