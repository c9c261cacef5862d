/** Which repository's worktree a session gets, and where that begins. */
import { realpathSync } from 'node:fs'
import { type AgentView, rigOf, type SessionsView } from '../record/config-view.ts'
import { isInside } from './overlay.ts'

/** The rig of its agent, else the innermost one that the directory is in; empty: none. */
export function worktreeRigOf(config: SessionsView, rig: string | undefined, directory: string): string {
  if (rig !== undefined && rig !== '') return rig
  const place = realPath(directory)
  const around = config.rigs
    .flatMap(({ name, path }) => (path === undefined ? [] : [{ name, root: realPath(path) }]))
    .filter(({ root }) => isInside(root, place))
  const inner = around.reduce<(typeof around)[number] | undefined>(
    (best, one) => (best === undefined || one.root.length > best.root.length ? one : best),
    undefined,
  )
  return inner?.name ?? ''
}

/** What it begins at; undefined: what is checked out. */
export const baseRefOf = (config: SessionsView, agent: AgentView | undefined, rig: string): string | undefined =>
  agent?.base_ref ?? config.worktrees.base_ref ?? rigOf(config, rig)?.default_branch

/** As it is given where it is not there. */
function realPath(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return path
  }
}
