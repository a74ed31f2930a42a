"""Wrote the data files of this folder, once, from the packages that carry them:

    pip install scikit-learn==1.9.1 statsmodels==0.15.0
    python reference.py
"""
import sklearn.datasets
import statsmodels.api as sm

levels = "0123456789abcdefg"
digits = sklearn.datasets.load_digits()
with open("digits.txt", "w") as f:
    for image, label in zip(digits.data, digits.target):
        f.write("".join(levels[int(x)] for x in image) + " %d\n" % label)

cancer = sklearn.datasets.load_breast_cancer(as_frame=True).frame
cancer.columns = [c.replace(" ", "_") for c in cancer.columns]
cancer.rename(columns={"target": "benign"}).to_csv("breast-cancer.csv", index=False)

diabetes = sklearn.datasets.load_diabetes(as_frame=True, scaled=False).frame
diabetes.rename(columns={"target": "progression"}).round(4).to_csv("diabetes.csv", index=False)

election = sm.datasets.anes96.load_pandas().data
election = election[["popul", "TVnews", "selfLR", "ClinLR", "DoleLR", "PID", "age", "educ", "income", "vote"]]
election.astype(int).to_csv("election.csv", index=False)
