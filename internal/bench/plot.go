// SPDX-License-Identifier: MPL-2.0

package bench

import (
	"bytes"
	"fmt"
	"image/color"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// The files of the plots.
const (
	distributionPlot = "distribution.svg"
	breakdownPlot    = "breakdown.svg"

	plotWidth  = 20 * vg.Centimeter
	plotHeight = 11 * vg.Centimeter
	barWidth   = 28
)

var plots = map[string]func(manifest *Manifest, rows []Row) (*plot.Plot, error){
	distributionPlot: drawDistribution,
	breakdownPlot:    drawBreakdown,
}

// svgOf draws one of the plots.
func svgOf(name string, manifest *Manifest, rows []Row) ([]byte, error) {
	p, err := plots[name](manifest, rows)
	if err != nil {
		return nil, fmt.Errorf("plot %s: %w", name, err)
	}
	canvas := vgsvg.New(plotWidth, plotHeight)
	p.Draw(draw.New(canvas))
	var text bytes.Buffer
	_, err = canvas.WriteTo(&text)
	return text.Bytes(), err
}

// drawDistribution shows the primary measure of each subject: a box from quartile to quartile with the median, whiskers,
// and what lies beyond them.
func drawDistribution(manifest *Manifest, rows []Row) (*plot.Plot, error) {
	layout := layouts[manifest.Campaign]
	if layout == nil {
		return nil, fmt.Errorf("there is no campaign %q", manifest.Campaign)
	}
	p := newPlot(layout.primaryTitle, available(manifest))
	for i, name := range available(manifest) {
		var values plotter.Values
		for _, ms := range observations(rows, name, layout.primary) {
			values = append(values, float64(ms)/1000)
		}
		if len(values) == 0 {
			continue
		}
		box, err := plotter.NewBoxPlot(barWidth, float64(i), values)
		if err != nil {
			return nil, err
		}
		box.FillColor = colour(i)
		p.Add(box)
	}
	return p, nil
}

// drawBreakdown shows what the time of each subject is made of, by the medians of the steps.
func drawBreakdown(manifest *Manifest, rows []Row) (*plot.Plot, error) {
	layout := layouts[manifest.Campaign]
	if layout == nil {
		return nil, fmt.Errorf("there is no campaign %q", manifest.Campaign)
	}
	names := available(manifest)
	p := newPlot(layout.stepsTitle, names)
	p.Legend.Top = true
	var stack []*plotter.BarChart
	var titles []string
	for _, step := range layout.steps {
		values, taken := make(plotter.Values, len(names)), false
		for at, name := range names {
			summary := summaryOf(rows, name, step.measure)
			values[at], taken = float64(summary.Median)/1000, taken || summary.Count > 0
		}
		if !taken {
			continue // a step of subjects that this host cannot do
		}
		i := len(stack)
		bars, err := plotter.NewBarChart(values, barWidth)
		if err != nil {
			return nil, err
		}
		bars.Color, bars.LineStyle.Width = colour(i), vg.Points(0.5)
		if i > 0 {
			bars.StackOn(stack[i-1])
		}
		stack, titles = append(stack, bars), append(titles, step.title)
		p.Add(bars)
	}
	for i, bars := range slices.Backward(stack) { // from the top, as they are stacked
		p.Legend.Add(titles[i], bars)
	}
	p.X.Max = float64(len(names)) + 0.8 // room for the legend
	return p, nil
}

// colour gives each of some things a colour of its own.
func colour(i int) color.Color {
	colours := slices.Concat(plotutil.SoftColors, plotutil.DarkColors)
	return colours[i%len(colours)]
}

func newPlot(title string, names []string) *plot.Plot {
	p := plot.New()
	p.Title.Text, p.Y.Label.Text, p.Y.Min = title, "seconds", 0
	p.Add(plotter.NewGrid())
	p.NominalX(names...)
	p.X.Min, p.X.Max = -0.6, float64(len(names))-0.4
	return p
}
