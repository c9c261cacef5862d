/** Servers of tools are programs or addresses: one that is both, or neither, would fail every start of who has it. */
import { type IssueList, placeText } from '../../../files/issues.ts'
import { placeOf, type TableNode, tableOf } from '../../../files/toml.ts'

export function checkToolServers(issues: IssueList, owner: TableNode | undefined): void {
  const servers = owner && tableOf(owner, 'mcp_servers')
  for (const [name, server] of servers?.entries ?? []) if (server.kind === 'table') checkServer(issues, name, server)
}

function checkServer(issues: IssueList, name: string, server: TableNode): void {
  const [isProgram, isAddress] = [server.entries.has('command'), server.entries.has('url')]
  const key = `mcp_servers.${name}`
  if (isProgram && isAddress) {
    const other = placeText(placeOf(server, 'command'))
    issues.error(
      placeOf(server, 'url'),
      `${key}.url`,
      `\`url\` and \`command\` (${other}) of the MCP server \`${name}\` exclude each other`,
      'a server is a program or an address: remove one of them',
    )
  } else if (!isProgram && !isAddress)
    issues.error(server.at, key, `the MCP server \`${name}\` has neither \`command\` nor \`url\``, 'set one of them')
}
