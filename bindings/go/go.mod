module caisson.dev/go

go 1.25
