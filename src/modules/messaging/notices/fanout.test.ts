import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DEFAULT_FANOUT } from '../routing/groups.ts'
import { fanOut, type Publication } from './fanout.ts'

const FIRST: Publication = { peers: 2, isTargeted: false, isPeerTriggered: false, publishes: 0, deliveries: 0 }

test('peers are told until a bound of their root is reached', () => {
  const cases: readonly [Partial<typeof DEFAULT_FANOUT>, Partial<Publication>, ReturnType<typeof fanOut>][] = [
    [{}, {}, { told: 2 }],
    [{}, { peers: 0 }, { told: 0 }],
    [{ enabled: false }, {}, { told: 0 }],
    [{ allow_untargeted_publication: false }, {}, { told: 0, limit: 'untargeted' }],
    [{ allow_untargeted_publication: false }, { isTargeted: true }, { told: 2 }],
    [{}, { isPeerTriggered: true, publishes: 2 }, { told: 2 }],
    [{}, { isPeerTriggered: true, publishes: 3 }, { told: 0, limit: 'peer_triggered_publishes' }],
    [{}, { isPeerTriggered: false, publishes: 3 }, { told: 2 }],
    [{ max_peer_triggered_publishes: 0 }, { isPeerTriggered: true, publishes: 1_000 }, { told: 2 }],
    [{}, { deliveries: 18 }, { told: 2 }],
    [{}, { deliveries: 19 }, { told: 1, limit: 'total_peer_deliveries' }],
    [{}, { deliveries: 25 }, { told: 0, limit: 'total_peer_deliveries' }],
    [{ max_total_peer_deliveries: 0 }, { deliveries: 1_000 }, { told: 2 }],
  ]
  for (const [bounds, publication, expected] of cases)
    assert.deepEqual(
      fanOut({ ...DEFAULT_FANOUT, ...bounds }, { ...FIRST, ...publication }),
      expected,
      JSON.stringify([bounds, publication]),
    )
})
