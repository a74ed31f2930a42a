package main

import "testing"

func TestMetricsScripts(t *testing.T) { scripts(t, "metrics") }
