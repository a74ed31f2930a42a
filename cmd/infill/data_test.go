package main

import "testing"

func TestDataScripts(t *testing.T) { scripts(t, "data") }
