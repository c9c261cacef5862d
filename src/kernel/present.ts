/** What has a value: JSON knows no member that is undefined, and neither does the contract. */
type Present<T> = { [K in keyof T as undefined extends T[K] ? never : K]: T[K] } & {
  [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>
}

/** The members that are not undefined, one level deep. */
export function present<T extends object>(value: T): Present<T>
export function present(value: object): object {
  return Object.fromEntries(Object.entries(value).filter(([, one]) => one !== undefined))
}

/** One member where it has a value, to be spread. */
export function given<const Name extends string, Value>(
  name: Name,
  value: Value | undefined,
): { readonly [N in Name]?: Value } {
  const field: { [N in Name]?: Value } = {}
  if (value !== undefined) field[name] = value
  return field
}
