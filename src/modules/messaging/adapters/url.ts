/** URLs that messages are posted to. */
import { invalidField } from '../../../kernel/problem.ts'
import { refusalOfHost } from './addresses.ts'

/** A URL as it is kept; 422 for what nothing can be posted to. What a name means is looked at when it is called. */
export function checkedUrl(text: string, at = 'body.callback_url'): string {
  const url = URL.parse(text)
  if (url === null) throw invalidField(at, 'is no URL', text)
  if (url.protocol !== 'http:' && url.protocol !== 'https:') throw invalidField(at, 'is neither http nor https', text)
  if (url.username !== '' || url.password !== '') throw invalidField(at, 'has credentials: give the adapter a secret')
  if (url.hash !== '') throw invalidField(at, 'has a fragment, which nobody would see', text)
  const refused = refusalOfHost(url)
  if (refused !== undefined) throw invalidField(at, refused, text)
  return url.href
}

/** What is posted to below a URL: its query stays. */
export function below(base: string, name: string): URL {
  const url = new URL(base)
  url.pathname = `${url.pathname.replace(/\/+$/, '')}/${name}`
  return url
}
