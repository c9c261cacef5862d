/**
 * What a turn takes, as far as the agent tells. The protocol has no stable word for it, so agents say it in several places:
 * `usage` of the answer to a prompt (opencode 1.18, claude-agent-acp 0.101, codex-acp 2.6), `_meta.quota` of it (Gemini CLI
 * 0.61), `_meta.usage` of the last chunk of each request to the model (Qwen Code 0.24, which adds up to the turn). All are
 * of the turn alone. Each was seen by running it. The host writes it into the log with the end of the turn, in one form.
 */
import { type Json, listOf, objectOf, textOf } from './json.ts'
import { type AcpUsage, usage } from './transcript.ts'

export interface Spent {
  readonly usage?: AcpUsage
  readonly model?: string
}

export class Meter {
  /** Of the requests of this turn, where the agent tells them one by one. */
  #requests: AcpUsage | undefined
  #model: string | undefined

  /** `update` is that of a `session/update`. */
  learn(update: Json): void {
    const meta = objectOf(update['_meta'])
    const request = usage(meta['usage'])
    if (request !== undefined) this.#requests = sum(this.#requests ?? {}, request)
    if (update['sessionUpdate'] === 'usage_update') this.#model = textOf(meta['_claude/model']) ?? this.#model
  }

  begin(): void {
    this.#requests = undefined
  }

  /** At the end of a turn, with the answer to its prompt. */
  end(answer: Json): Spent {
    const quota = objectOf(objectOf(answer['_meta'])['quota'])
    const spent = usage(answer['usage']) ?? usage(quota['token_count']) ?? this.#requests
    const models = listOf(quota['model_usage'])
    const model = this.#model ?? (models.length === 1 ? textOf(models[0]?.['model']) : undefined)
    return { ...(spent === undefined ? {} : { usage: spent }), ...(model === undefined ? {} : { model }) }
  }
}

function sum(a: AcpUsage, b: AcpUsage): AcpUsage {
  const total: Record<string, number> = { ...a }
  for (const [field, tokens] of Object.entries(b)) total[field] = (total[field] ?? 0) + tokens
  return total
}
