import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  findPreset,
  isPreset,
  PRESET_NAMES,
  PRESETS,
  type ProviderPreset,
  presetCommand,
  probeTargets,
} from './presets.ts'

const all: readonly (readonly [string, ProviderPreset])[] = Object.entries(PRESETS)

test('the order of presets is the order of the API, with shell last', () => {
  assert.equal(
    PRESET_NAMES.join(' '),
    'claude codex gemini grok kimi kiro cursor copilot amp opencode mimocode groq cerebras auggie pi omp antigravity shell',
  )
})

test('every default of an option is one of its choices, and keys and values are unique', () => {
  for (const [name, preset] of all) {
    const keys = preset.options_schema.map((option) => option.key)
    assert.equal(new Set(keys).size, keys.length, name)
    for (const { key, default: fallback, choices } of preset.options_schema) {
      const values = choices.map((choice) => choice.value)
      assert.ok(values.includes(fallback), `${name}.${key}: ${fallback}`)
      assert.equal(new Set(values).size, values.length, `${name}.${key}`)
      assert.ok(
        choices.every((choice) => choice.label !== ''),
        `${name}.${key}`,
      )
    }
  }
})

test('opencode asks over ACP where its mode says so, and not where it is unrestricted, which is the default', () => {
  for (const name of ['opencode', 'groq', 'cerebras'] as const) {
    const [modes] = PRESETS[name].options_schema
    assert.deepEqual([modes.key, modes.default], ['permission_mode', 'unrestricted'])
    const said = (value: string) => modes.choices.find((one) => one.value === value)?.env?.['OPENCODE_PERMISSION']
    assert.equal(said('unrestricted'), '{"*":"allow"}')
    assert.match(said('ask') ?? '', /"edit":"ask","bash":"ask"/)
    assert.deepEqual([said('default'), PRESETS[name].env], [undefined, {}])
  }
})

test('every preset is coherent', () => {
  for (const [name, preset] of all) {
    assert.ok(preset.display_name !== '' && !name.includes(':'), name)
    assert.equal(
      preset.prompt_mode === 'flag',
      preset.prompt_flag !== undefined,
      `${name}: a prompt flag goes with mode flag`,
    )
    assert.equal(preset.resume_flag === undefined, preset.resume_style === undefined, `${name}: resume`)
    assert.equal(preset.supports_acp, preset.acp_args !== undefined, `${name}: acp`)
    assert.ok(preset.ready_confirmation === undefined || preset.ready_prompt_prefix === undefined, `${name}: readiness`)
  }
})

test('nothing of ours is passed to a shell, and it is typed at by lines', () => {
  const { prompt_mode, delivery, args, options_schema } = PRESETS.shell
  assert.deepEqual(
    { prompt_mode, delivery, args, options_schema },
    { prompt_mode: 'omit', delivery: 'line', args: [], options_schema: [] },
  )
})

test('the shell is the shell of the user', () => {
  assert.equal(presetCommand(PRESETS.shell, { SHELL: '/bin/zsh' }), '/bin/zsh')
  assert.equal(presetCommand(PRESETS.shell, { SHELL: '' }), '/bin/sh')
  assert.equal(presetCommand(PRESETS.claude, { claude: 'x' }), 'claude')
  assert.deepEqual(probeTargets({ SHELL: '/bin/dash' }).at(-1), {
    name: 'shell',
    display_name: 'Shell',
    command: '/bin/dash',
  })
})

test('names of objects in general are no presets', () => {
  assert.equal(isPreset('toString') || isPreset('__proto__') || isPreset(''), false)
  assert.equal(findPreset('constructor'), undefined)
  assert.equal(findPreset('codex')?.command, 'codex')
})
