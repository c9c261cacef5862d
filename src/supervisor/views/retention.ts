/** What a city removes for its age: the round of all its families, which follows the configuration. */
import { RetentionRounds, type Sweep } from '../../kernel/retention.ts'
import { config } from '../../modules/config/family.ts'
import type { Running } from './running.ts'

/** Begins the rounds; call what is returned to end them. */
export function startRetention(city: Running, sweeps: readonly Sweep[]): () => Promise<void> {
  const { clock, log: logger } = city.host
  const { db, log } = city.store
  const rounds = new RetentionRounds({ city: city.name, db, log, clock, logger, sweeps })
  const unlisten = config.of(city).config.onChange(() => rounds.reconfigured())
  rounds.start()
  return () => {
    unlisten()
    return rounds.stop()
  }
}
