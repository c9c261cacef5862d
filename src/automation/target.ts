/** Whom work is for: one word, the same for steps, orders and sling (decision 109). */

/** Who is configured in a city. */
export interface Workers {
  readonly agents: readonly { readonly identity: string }[]
  readonly named_sessions: readonly { readonly identity: string }[]
}

export interface Target {
  /** Full name; the word itself where nobody is called so. */
  readonly target: string
  readonly known: boolean
}

/** With `/` it is meant as it stands; else it is the rig's agent or session, else the city's. */
export function resolveTarget({ agents, named_sessions: named }: Workers, word: string, rig: string): Target {
  const inRig = rig === '' || word.includes('/') ? [] : [`${rig}/${word}`]
  const target = [...inRig, word].find((name) => [...agents, ...named].some(({ identity }) => identity === name))
  return target === undefined ? { target: word, known: false } : { target, known: true }
}
