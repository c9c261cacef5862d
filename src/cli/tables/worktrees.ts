// biome-ignore-all format: generated from the contract by src/cli/generate-tables.ts; do not edit
import type { Table } from '../framework/table.ts'

export const WORKTREES: Table<'list-worktrees' | 'prune-worktrees' | 'get-worktree' | 'delete-worktree'> = {
  'list-worktrees': {"method":"GET","summary":"List worktrees","description":"By name. What git says of them was looked at a little while ago; whoever reads makes the next look come.","fields":{"fresh":{"at":"query","kind":"bool","says":"Look now, for at most 10 s, instead of saying what was seen last."}},"city":true,"lists":true},
  'prune-worktrees': {"method":"POST","summary":"Remove worktrees that are not needed","description":"Looks at those of closed sessions again: what is clean, and merged or pushed by now, is removed with its branch.","fields":{"dry_run":{"at":"body","kind":"bool","says":"Only say what would happen."}},"city":true},
  'get-worktree': {"method":"GET","summary":"Get a worktree","description":"With what git said of it when it was last looked at.","fields":{"name":{"at":"params","kind":"text","required":true,"says":"Name of the worktree."},"fresh":{"at":"query","kind":"bool","says":"Look now, for at most 10 s, instead of saying what was seen last."}},"city":true},
  'delete-worktree': {"method":"DELETE","summary":"Remove a worktree","description":"Of a closed session, where it is clean, and merged or pushed; its branch goes with it. With `force` also another one, with what is in no commit: a branch with commits that are nowhere else stays.","fields":{"name":{"at":"params","kind":"text","required":true,"says":"Name of the worktree."},"force":{"at":"query","kind":"bool","says":"Also what would be lost with it."}},"city":true},
}
