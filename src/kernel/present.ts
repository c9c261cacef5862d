/** What has a value: JSON knows no member that is undefined, and neither does the contract. */
type Present<T> = { [K in keyof T as undefined extends T[K] ? never : K]: T[K] } & {
  [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>
}

/** The members that are not undefined, one level deep. */
export function present<T extends object>(value: T): Present<T>
export function present(value: object): object {
  return Object.fromEntries(Object.entries(value).filter(([, one]) => one !== undefined))
}
