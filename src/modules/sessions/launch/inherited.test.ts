import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inheritedEnvironment } from './inherited.ts'

const OURS = {
  PATH: '/bin',
  HOME: '/home/ann',
  LANG: 'C.UTF-8',
  LC_ALL: 'C',
  AWS_SECRET_ACCESS_KEY: 'k1',
  AWS_REGION: 'eu',
  GH_TOKEN: 'k2',
  ANTHROPIC_API_KEY: 'k3',
  SVC_TOKEN: 'master',
  SVC_HOME: '/home/ann/.svc',
  TMUX: '/tmp/tmux',
  CI: 'true',
  GITHUB_ACTIONS: 'true',
}
const namesOf = (...args: Parameters<typeof inheritedEnvironment> extends [unknown, ...infer Rest] ? Rest : never) =>
  Object.keys(inheritedEnvironment(OURS, ...args))

const CASES: readonly [string, Parameters<typeof namesOf>, readonly string[]][] = [
  [
    'everything but what is the supervisor’s own, where nothing is said',
    [{}, {}],
    ['PATH', 'HOME', 'LANG', 'LC_ALL', 'AWS_SECRET_ACCESS_KEY', 'AWS_REGION', 'GH_TOKEN', 'ANTHROPIC_API_KEY'],
  ],
  [
    'no secret of a cloud that the city denies',
    [{ env_deny: ['AWS_*', 'G?_TOKEN'], inherit_env: 'all' }, {}],
    ['PATH', 'HOME', 'LANG', 'LC_ALL', 'ANTHROPIC_API_KEY'],
  ],
  [
    'what the city lists, and what every program needs',
    [{ inherit_env: ['ANTHROPIC_*'] }, {}],
    ['PATH', 'HOME', 'LANG', 'LC_ALL', 'ANTHROPIC_API_KEY'],
  ],
  ['what the provider lists', [{}, { inherit_env: ['GH_TOKEN'] }], ['PATH', 'HOME', 'LANG', 'LC_ALL', 'GH_TOKEN']],
  [
    'no more than the city lists, whatever the provider of a pack says',
    [{ inherit_env: ['AWS_REGION'] }, { inherit_env: ['AWS_*', 'SVC_*'] }],
    ['PATH', 'HOME', 'LANG', 'LC_ALL', 'AWS_REGION'],
  ],
  [
    'no more than that either',
    [{ inherit_env: ['AWS_REGION'] }, { inherit_env: 'all' }],
    ['PATH', 'HOME', 'LANG', 'LC_ALL', 'AWS_REGION'],
  ],
  [
    'nothing that is denied, also what every program needs',
    [{ inherit_env: [], env_deny: ['H*', 'L*'] }, {}],
    ['PATH'],
  ],
]

for (const [what, given, names] of CASES)
  test(`an agent inherits ${what}`, () => assert.deepEqual(namesOf(...given), names))
