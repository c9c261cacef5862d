import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findPreset, isPreset, PRESET_NAMES, PRESETS, presetCommand, probeTargets } from './all.ts'
import { claude } from './claude.ts'
import { shell } from './shell.ts'

const all = [...PRESETS]

test('the order of presets is the order of the API, with shell last', () => {
  assert.equal(
    PRESET_NAMES.join(' '),
    'claude codex gemini grok kimi kiro cursor copilot amp opencode mimocode groq cerebras auggie pi omp antigravity qwen aider goose crush droid shell',
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

test('no default skips a question that the harness would ask, or burns the most', () => {
  const risky = /skip|dangerous|bypass|yolo|allow-all|trust-all|never-ask|always-approve|^-f$|--force|"\*":"allow"/
  for (const [name, preset] of all) {
    const chosen = preset.options_schema.flatMap(({ default: fallback, choices }) =>
      choices.filter(({ value }) => value === fallback),
    )
    const said = [
      ...preset.args,
      ...(preset.acp_args ?? []),
      ...chosen.flatMap(({ flag_args, env = {} }) => [...flag_args, ...Object.values(env)]),
    ]
    assert.deepEqual(
      said.filter((word) => risky.test(word)),
      [],
      name,
    )
    const effort = preset.options_schema.find(({ key }) => key === 'effort')
    assert.ok(effort === undefined || effort.default === '', `${name}: effort`)
    const modes = preset.options_schema.find(({ key }) => key === 'permission_mode')
    assert.ok(!['unrestricted', 'full-auto'].includes(modes?.default ?? ''), `${name}: ${modes?.default}`)
  }
})

test('full-auto of claude does not deny what it should do by itself', () => {
  const modes = claude.preset.options_schema.find(({ key }) => key === 'permission_mode')
  const mode = modes?.choices.find(({ value }) => value === 'full-auto')
  assert.deepEqual([mode?.flag_args, mode?.acp_mode], [['--permission-mode', 'auto'], 'auto'])
})

test('models are free text with suggestions', () => {
  for (const [name, preset] of all) {
    const model = preset.options_schema.find(({ key }) => key === 'model')
    assert.ok(model === undefined || model.free_args?.includes('{value}'), name)
  }
})

test('opencode asks over ACP unless it is told otherwise', () => {
  for (const name of ['opencode', 'groq', 'cerebras'] as const) {
    const preset = findPreset(name)
    const modes = preset?.options_schema[0]
    assert.deepEqual([modes?.key, modes?.default], ['permission_mode', 'ask'])
    const said = (value: string) => modes?.choices.find((one) => one.value === value)?.env?.['OPENCODE_PERMISSION']
    assert.equal(said('unrestricted'), '{"*":"allow"}')
    assert.match(said('ask') ?? '', /"edit":"ask","bash":"ask"/)
    assert.deepEqual([said('default'), preset?.env], [undefined, {}])
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
    assert.ok(preset.session_id_flag === undefined || preset.resume_flag !== undefined, `${name}: an id to resume by`)
    assert.ok(preset.ready_confirmation === undefined || preset.ready_prompt_prefix === undefined, `${name}: readiness`)
  }
})

test('nothing of ours is passed to a shell, and it is typed at by lines', () => {
  const { prompt_mode, delivery, args, options_schema } = shell.preset
  assert.deepEqual(
    { prompt_mode, delivery, args, options_schema },
    { prompt_mode: 'omit', delivery: 'line', args: [], options_schema: [] },
  )
})

test('the shell is the shell of the user', () => {
  assert.equal(presetCommand(shell.preset, { SHELL: '/bin/zsh' }), '/bin/zsh')
  assert.equal(presetCommand(shell.preset, { SHELL: '' }), '/bin/sh')
  assert.equal(presetCommand(claude.preset, { claude: 'x' }), 'claude')
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
