/** Steps as a tree of lines, or as Mermaid: what contains what by nesting, what waits for what beside it. */
import type { StepGraph, StepGraphNode } from '../../contract/automation/graph.ts'
import { printable } from '../base/failure.ts'
import type { Sink } from '../base/io.ts'
import { cutTo, widthOf } from '../print/text-width.ts'

export const GRAPH_FORMATS = ['text', 'mermaid'] as const
export type GraphFormat = (typeof GRAPH_FORMATS)[number]

/** On a terminal the lines of a tree fit: it is a drawing, which must not be broken. */
export function graphText(graph: StepGraph, format: GraphFormat, to: Pick<Sink, 'isTerminal' | 'columns'>): string {
  const width = to.isTerminal ? to.columns : Number.POSITIVE_INFINITY
  return `${(format === 'mermaid' ? mermaidLines(graph) : treeLines(graph, width)).join('\n')}\n`
}

/** Deeper trees lose the left of their lines, so that their size stays in bounds. */
const MAX_INDENT = 120
const INCLUDED: Readonly<Record<StepGraphNode['included'], string>> = { yes: '●', no: '✗', unknown: '?' }
/** What stands before a step, wherever steps are drawn. */
export const STEP_MARKS: Readonly<Record<NonNullable<StepGraphNode['status']>, string>> = {
  pending: '·',
  ready: '○',
  active: '▶',
  waiting: '…',
  completed: '✓',
  failed: '✗',
  skipped: '–',
  canceled: '×',
}

/** A line for each step, parents before what is in them. */
function treeLines(graph: StepGraph, width: number): readonly string[] {
  const children = childrenOf(graph)
  const needs = Map.groupBy(graph.edges, ({ to }) => to)
  const lines: string[] = []
  const draw = (nodes: readonly StepGraphNode[], below: string, isTop: boolean): void => {
    for (const [index, node] of nodes.entries()) {
      const isLast = index === nodes.length - 1
      const lead = isTop ? '' : `${below}${isLast ? '└─ ' : '├─ '}`
      lines.push(cutTo(printable(`${lead}${lineOf(node, needs.get(node.id) ?? [], width - lead.length)}`), width))
      draw(children.get(node.id) ?? [], isTop ? '' : `${below}${isLast ? '   ' : '│  '}`.slice(-MAX_INDENT), false)
    }
  }
  draw(children.get(undefined) ?? [], '', true)
  return lines.length === 0 ? ['no steps'] : lines
}

/** Titles give way to what is waited for. */
const SHORTEST_TITLE = 8

function lineOf(node: StepGraphNode, needs: StepGraph['edges'], room: number): string {
  const { id, title, status, included } = node
  const mark = status === undefined ? INCLUDED[included] : STEP_MARKS[status]
  const waits = needs.length === 0 ? '' : `  ← ${needs.map(({ from }) => lastOf(from)).join(', ')}`
  const name = `${mark} ${lastOf(id)}${kindOf(node)}`
  if (title === lastOf(id)) return `${name}${waits}`
  const left = Math.max(SHORTEST_TITLE, room - widthOf(name) - widthOf(waits) - 2)
  return `${name}  ${cutTo(printable(oneLine(title)), left)}${waits}`
}

function kindOf({ kind, repeat }: StepGraphNode): string {
  if (repeat === undefined) return kind === 'gate' ? ' [gate]' : ''
  const counts = Object.entries(repeat.statuses ?? {}).map(([status, count]) => `${count} ${status}`)
  const items = repeat.count === undefined ? [] : [repeat.count === 1 ? '1 item' : `${repeat.count} items`]
  return ` [${[kind, ...items, ...counts].join(', ')}]`
}

const lastOf = (id: string): string => id.slice(id.lastIndexOf('.') + 1)
const oneLine = (text: string): string => text.replaceAll(/\s+/g, ' ').trim()
const childrenOf = ({ nodes }: StepGraph) => Map.groupBy(nodes, ({ parent }) => parent)

/** A flowchart: groups as subgraphs, gates as hexagons, what is left out with dashes. */
function mermaidLines(graph: StepGraph): readonly string[] {
  const children = childrenOf(graph)
  const names = new Map(graph.nodes.map(({ id }, index) => [id, `n${index}`]))
  const nameOf = (id: string) => names.get(id) ?? 'n'
  const draw = (nodes: readonly StepGraphNode[], indent: string): readonly string[] =>
    nodes.flatMap((node) => {
      const inside = children.get(node.id) ?? []
      const label = labelOf(node)
      if (inside.length === 0)
        return [`${indent}${nameOf(node.id)}${node.kind === 'gate' ? `{{${label}}}` : `[${label}]`}`]
      return [`${indent}subgraph ${nameOf(node.id)}[${label}]`, ...draw(inside, `${indent}  `), `${indent}end`]
    })
  const left = graph.nodes.filter(({ included }) => included === 'no').map(({ id }) => nameOf(id))
  return [
    'flowchart TD',
    ...draw(children.get(undefined) ?? [], '  '),
    ...graph.edges.map(({ from, to }) => `  ${nameOf(from)} --> ${nameOf(to)}`),
    ...(left.length === 0 ? [] : ['  classDef left stroke-dasharray: 4 4', `  class ${left.join(',')} left`]),
  ]
}

function labelOf(node: StepGraphNode): string {
  const { id, title } = node
  const name = lastOf(id)
  const text = `${name}${kindOf(node)}${title === name ? '' : `: ${oneLine(title)}`}`
  return `"${mermaidText(text)}"`
}

/** What the language of charts has a meaning for stands there as an entity. */
const mermaidText = (text: string): string =>
  printable(text).replaceAll(/[#"<>&`\\[\]{}|]/g, (sign) => `#${sign.codePointAt(0)};`)
