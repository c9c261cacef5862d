/** Which paths exist, for answers about paths that nothing handles. */
import { needsRunningCity, type Operation } from '../contract/base/operation.ts'

export interface Routes {
  /** Methods that the path takes; empty where there is no such path. */
  methodsOf(path: string): readonly string[]
  /** True for the paths that work on any registered city. */
  worksWhenStopped(path: string): boolean
}

export function createRoutes(operations: readonly Operation[]): Routes {
  const table = operations.map((operation) => ({ operation, pattern: patternOf(operation.path) }))
  const matching = (path: string) => table.filter(({ pattern }) => pattern.test(path)).map(({ operation }) => operation)
  return {
    methodsOf: (path) => [...new Set(matching(path).map(({ method }) => method))].sort(),
    worksWhenStopped: (path) => matching(path).some((operation) => !needsRunningCity(operation)),
  }
}

function patternOf(path: string): RegExp {
  const parts = path.split(/\{\w+\}/).map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
  return new RegExp(`^${parts.join('[^/]+')}$`)
}
