package tui

import (
	"github.com/charmbracelet/bubbles/key"
	tea "github.com/charmbracelet/bubbletea"
)

type runBrowser struct{}

type runMsg struct{}
type watchMsg struct{}

func (b *runBrowser) take(runMsg)                 {}
func (b *runBrowser) key(tea.KeyMsg, keyMap) bool { return false }
func (b *runBrowser) keys(k keyMap) []key.Binding { return nil }
func (b *runBrowser) Render(s *styles, columns, rows int) string {
	return stack(columns, rows, "", s.faint.Render("  no run"))
}
func (m *Model) loadRun() tea.Cmd  { return nil }
func (m *Model) watchRun() tea.Cmd { return nil }
