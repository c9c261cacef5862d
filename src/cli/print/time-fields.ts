// biome-ignore-all format: generated from the contract by src/cli/generate-tables.ts; do not edit
/** Fields of answers that are times. */
export const TIME_FIELDS: readonly string[] = ["at","closed_at","created_at","deadline","defer_until","expires_at","fetched","finished_at","last_active","last_activity","last_nudge_delivered_at","last_used_at","lease_expires_at","loaded_at","observed_at","quarantined_until","retry_at","since","started_at","state_since","timestamp","ts","updated_at"]
