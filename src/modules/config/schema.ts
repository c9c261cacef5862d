/** Moved to the contract; import it from there. */
export * from '../../contract/config-schema.ts'
