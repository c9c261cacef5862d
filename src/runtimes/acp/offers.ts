/**
 * What an agent takes and can be set to. Agents tell settings in one of two ways: as `configOptions`, of which one is the
 * mode and one the model, or as `modes` and `models` of their own; some tell both, and then the first is what they read.
 */
import { cut } from '../../contract/base/text.ts'
import type { AgentOffers, AgentSetting } from '../process/runtime.ts'
import { isObject, type Json, listOf, objectOf, textOf } from './json.ts'

const MAX_SETTINGS = 32
const MAX_CHOICES = 500
const MAX_TEXT = 256

/** How a setting is changed. */
export type SettingWay =
  | { readonly by: 'config'; readonly configId: string }
  | { readonly by: 'mode' }
  | { readonly by: 'model' }

interface Known extends AgentSetting {
  readonly way: SettingWay
}

export class Offers {
  readonly #able: Pick<AgentOffers, 'accepts' | 'forks'>
  #settings: readonly Known[] = []

  /** `capabilities` as `initialize` told them. */
  constructor(capabilities: Json) {
    const { image, audio, embeddedContext } = objectOf(capabilities['promptCapabilities'])
    this.#able = {
      accepts: { image: image === true, audio: audio === true, embedded: embeddedContext === true },
      forks: isObject(objectOf(capabilities['sessionCapabilities'])['fork']),
    }
  }

  get current(): AgentOffers {
    return { ...this.#able, settings: this.#settings.map(({ way: _, ...setting }) => setting) }
  }

  /** The answer to `session/new`, `load`, `resume` or `fork`. */
  opened(answer: Json): void {
    const told = settingsOf(answer['configOptions'])
    const modes = choiceOf('mode', 'Mode', objectOf(answer['modes']), 'currentModeId', 'availableModes', 'id')
    const models = choiceOf(
      'model',
      'Model',
      objectOf(answer['models']),
      'currentModelId',
      'availableModels',
      'modelId',
    )
    const legacy: Known[] = [
      ...(modes === undefined ? [] : [{ ...modes, way: { by: 'mode' } as const }]),
      ...(models === undefined ? [] : [{ ...models, way: { by: 'model' } as const }]),
    ]
    this.#settings = [...told, ...legacy.filter(({ key }) => !told.some((one) => one.key === key))]
  }

  /** An update of the session; true where something has changed. */
  learn(update: Json): boolean {
    if (update['sessionUpdate'] === 'config_option_update') return this.configured(update)
    if (update['sessionUpdate'] === 'current_mode_update') return this.became('mode', textOf(update['currentModeId']))
    return false
  }

  /** The answer to a change, or the news of one: all options as they are now. */
  configured(answer: Json): boolean {
    const told = settingsOf(answer['configOptions'])
    if (told.length === 0) return false
    const before = JSON.stringify(this.#settings)
    this.#settings = [...told, ...this.#settings.filter(({ key, way }) => way.by !== 'config' && !has(told, key))]
    return JSON.stringify(this.#settings) !== before
  }

  became(key: string, current: string | undefined): boolean {
    const setting = this.#settings.find((one) => one.key === key)
    if (setting === undefined || current === undefined || setting.current === current) return false
    this.#settings = this.#settings.map((one) => (one === setting ? { ...one, current: shortened(current) } : one))
    return true
  }

  setting(key: string): Known | undefined {
    return this.#settings.find((one) => one.key === key)
  }
}

const has = (settings: readonly Known[], key: string) => settings.some((one) => one.key === key)

function settingsOf(options: unknown): readonly Known[] {
  const taken = new Set<string>()
  return listOf(options)
    .slice(0, MAX_SETTINGS)
    .flatMap((option) => {
      const configId = textOf(option['id'])
      if (configId === undefined) return []
      const category = option['category']
      const key = category === 'mode' || category === 'model' ? category : configId
      if (taken.has(key)) return []
      taken.add(key)
      const current = option['currentValue']
      return {
        key: shortened(key),
        label: shortened(textOf(option['name']) ?? configId),
        ...(current === undefined || current === null ? {} : { current: shortened(String(current)) }),
        choices: option['type'] === 'boolean' ? ON_OFF : choicesOf(option['options'], 'value'),
        way: { by: 'config', configId },
      }
    })
}

const ON_OFF = ['true', 'false'].map((value) => ({ value, label: value }))

/** Groups are only for people who look at a list. */
function choicesOf(options: unknown, id: string): AgentSetting['choices'] {
  return listOf(options)
    .flatMap((option) => (Array.isArray(option['options']) ? listOf(option['options']) : [option]))
    .slice(0, MAX_CHOICES)
    .flatMap((option) => {
      const value = textOf(option[id])
      return value === undefined ? [] : [{ value: shortened(value), label: shortened(textOf(option['name']) ?? value) }]
    })
}

function choiceOf(
  key: string,
  label: string,
  state: Json,
  current: string,
  available: string,
  id: string,
): AgentSetting | undefined {
  const choices = choicesOf(state[available], id)
  if (choices.length === 0) return undefined
  const value = textOf(state[current])
  return { key, label, ...(value === undefined ? {} : { current: shortened(value) }), choices }
}

const shortened = (text: string) => cut(text, MAX_TEXT)
