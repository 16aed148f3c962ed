module apiserver

go 1.24
