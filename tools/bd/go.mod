module svcctl/tools/bd

go 1.24.0

require github.com/steveyegge/beads v0.47.1
